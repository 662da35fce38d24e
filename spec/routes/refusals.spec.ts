import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { INVOKE, ROWS } from './refusals.ts';
import { envelope, send, sharedRoutes } from './world.ts';

const JSON_BODY = { 'content-type': 'application/json' };

describe('every failure is one envelope with the status of its code', () => {
  const world = sharedRoutes();

  for (const { rule, method = 'POST', path, headers = JSON_BODY, status, code, details, ...sent } of ROWS)
    it(`${code} ${status}: ${rule}`, async () => {
      await send(world().agents, method, path, { headers, ...sent })
        .expect(status)
        .expect(envelope(code, details));
    });

  it('schema violations name their path, rule and nothing of the input', async () => {
    const body = JSON.stringify({ city: 7, secret: 'hunter2' });
    const { text } = await send(world().agents, 'POST', INVOKE, { headers: JSON_BODY, body }).expect(400);
    const { details } = JSON.parse(text) as { details: { errors: { path: string; keyword: string }[] } };
    assert.ok(details.errors.some(({ path, keyword }) => path === '$.city' && keyword === 'type'));
    assert.ok(!text.includes('hunter2'));
  });
});
