import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { METHODS, pathOf, ROUTES, type Setting, WITHOUT } from './table.ts';
import { envelope, type Sent, send, sharedRoutes } from './world.ts';

describe('a route whose setting is missing', () => {
  /** Everything of an answer that two answers to the same request id can share. */
  const seen = ({ status, headers, text }: Response): unknown => {
    const { date: _date, ...stable } = headers;
    return [status, stable, text];
  };

  for (const setting of Object.keys(WITHOUT) as Setting[])
    describe(setting, () => {
      const world = sharedRoutes(WITHOUT[setting]);

      for (const route of ROUTES)
        if (route.needs.includes(setting))
          it(`${route.path} looks exactly like no route, for every method`, async () => {
            const { headers = {}, body } = route.sent();
            for (const method of METHODS) {
              const sent: Sent = {
                headers: { ...headers, 'x-request-id': 'same' },
                ...(method === 'POST' && body !== undefined ? { body } : {}),
              };
              const answer = await send(world().agents, method, route.path, sent);
              assert.equal(answer.status, 404);
              assert.deepEqual(seen(answer), seen(await send(world().agents, method, '/nowhere', sent)));
              if (method !== 'HEAD') envelope('NOT_FOUND')(answer);
            }
          });

      it('leaves the other routes as they are', async () => {
        for (const route of ROUTES.filter(({ needs }) => !needs.includes(setting))) {
          const path = await pathOf(route, world().agents);
          assert.equal((await send(world()[route.app], route.method, path, route.sent())).status, route.status, path);
        }
      });
    });
});
