import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import express, { type ErrorRequestHandler } from 'express';
import request from 'supertest';
import { GatewayError } from '../../src/errors.ts';
import type { InPlaceRoute, Route } from '../../src/passthrough/route.ts';
import { inPlaceOf, onlyInPlace, takeRoute } from '../../src/passthrough/take-route.ts';

const IN_PLACE: InPlaceRoute = {
  ...{ resourceId: 'report', asks: 'call', path: '/reports/x', query: '', publicPath: '/reports/x' },
  allow: 'GET, HEAD, OPTIONS',
};

/** Says which handler answered a request that has this route. */
async function answeredBy(route: Route): Promise<string> {
  const app = express();
  app.use(
    takeRoute(
      () => route,
      (_req, res) => void res.send('passthrough'),
    ),
  );
  app.use(onlyInPlace((_req, res) => void res.send(`sale of ${inPlaceOf(res)?.resourceId}`)));
  app.use(
    (_req, res) => void res.send(`own routes, ${inPlaceOf(res) === undefined ? 'no sale noted' : 'a sale noted'}`),
  );
  const failed: ErrorRequestHandler = (error: GatewayError, _req, res, _next) =>
    void res.status(error.status).set(error.headers).send(error.code);
  app.use(failed);
  const answer = await request(app).get('/x');
  return [answer.status, answer.text, answer.headers['allow']].filter((part) => part !== undefined).join(' ');
}

describe('a request', () => {
  const refused = new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET' } });
  for (const [title, route, answer] of [
    ["of the gateway's own goes to its routes, past those of sales", { kind: 'own' }, '200 own routes, no sale noted'],
    ['that passes is answered by the passthrough alone', { kind: 'pass' }, '200 passthrough'],
    ['at an address that sells goes to the sale', { kind: 'in_place', inPlace: IN_PLACE }, '200 sale of report'],
    ['that is refused gets the error of its route', { kind: 'refused', error: refused }, '405 METHOD_NOT_ALLOWED GET'],
  ] as const)
    it(title, async () => assert.equal(await answeredBy(route), answer));
});

it('the decision is made from the request line as it came', async () => {
  const seen: unknown[] = [];
  const app = express();
  app.use((req, res, next) => {
    const route = takeRoute(
      ({ method, url, originalUrl }) => {
        seen.push([method, url, originalUrl]);
        return { kind: 'own' };
      },
      () => assert.fail('nothing passes'),
    );
    route(req, res, next);
  });
  app.use((_req, res) => void res.end());
  await request(app).post('/a//b;c?d=%2f');
  assert.deepEqual(seen, [['POST', '/a//b;c?d=%2f', '/a//b;c?d=%2f']]);
});
