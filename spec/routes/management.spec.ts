import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROUTES } from './table.ts';
import { envelope, send, sharedRoutes } from './world.ts';

describe('the management app', () => {
  const world = sharedRoutes();
  const own = ROUTES.filter(({ app }) => app === 'management');
  const elsewhere = ROUTES.filter(({ app, path }) => app === 'agents' && !own.some((row) => row.path === path));

  it('answers /metrics in the text format of Prometheus, and shows no metric twice', async () => {
    const { text } = await send(world().management, 'GET', '/metrics').expect(200);
    const lines = text.split('\n').filter((line) => line !== '');
    for (const line of lines)
      assert.match(line, /^(# (HELP|TYPE) [a-z_0-9]+ .+|[a-z_0-9]+(\{([a-z_]+="[^"]*",?)+\})? [-+.e0-9a-zA-Z]+)$/);
    const named = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2]);
    assert.ok(named.length > 20);
    assert.equal(new Set(named).size, named.length);
  });

  it('has no route for agents or operators', async () => {
    for (const { path, method, sent } of elsewhere)
      await send(world().management, method, path, sent()).expect(404).expect(envelope('NOT_FOUND'));
  });

  it('shares no route with agents but the probes', async () => {
    for (const { path } of own.filter(({ audience }) => audience !== 'probes'))
      await send(world().agents, 'GET', path).expect(404).expect(envelope('NOT_FOUND'));
  });
});
