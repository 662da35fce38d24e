import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { eventually } from '../support/records.ts';
import { ROUTES } from './table.ts';
import { envelope, openRoutes, send, sharedRoutes } from './world.ts';

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
    assert.ok(named.length > 20 && !text.includes(OPERATOR_TOKEN));
    assert.equal(new Set(named).size, named.length);
  });

  it('serves one text of metrics for a second, and shows the delay of the event loop in the first', async () => {
    const asked = async () => (await send(world().management, 'GET', '/metrics').expect(200)).text;
    const first = await asked();
    assert.match(first, /^nodejs_eventloop_lag_mean_seconds \d/m);
    assert.match(first, /^nodejs_eventloop_lag_min_seconds 0\.\d/m);
    assert.equal(await asked(), first);
    await eventually(async () => ((await asked()) === first ? undefined : true), 'a new text');
  });

  it('serves probes and hooks at every address of the pod, and probes under every name', async () => {
    for (const { path, sent, audience } of own)
      for (const host of ['10.1.2.3:8403', '[fd00::1]:8403', ...(audience === 'hooks' ? [] : ['elsewhere.example'])])
        await send(world().management, 'GET', path, { headers: { ...sent().headers, host } }).expect(200);
  });

  it('tells the pod what keeps requests from being routed to it', async () => {
    const opened = await openRoutes();
    try {
      const asked = async () => {
        const { status, text } = await send(opened.management, 'GET', '/routing');
        return [status, JSON.parse(text)] as const;
      };
      assert.deepEqual(await asked(), [200, { name: 'routing', status: 'pass' }]);
      opened.fence.raise();
      assert.deepEqual(await asked(), [503, { name: 'routing', status: 'fail', detail: 'adapter-unreachable' }]);
      opened.fence.lower();
      assert.deepEqual(await asked(), [200, { name: 'routing', status: 'pass' }]);
      await opened.lifecycle.drain({ propagationMs: 0, finishMs: 0, stopListening: () => undefined });
      assert.deepEqual(await asked(), [503, { name: 'routing', status: 'fail', detail: 'draining' }]);
    } finally {
      await opened.close();
    }
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

describe('the hooks of a pod with a key', () => {
  const world = sharedRoutes({}, { key: 'test-key', drain: async () => undefined, release: async () => undefined });

  it('run for a request with the key, and for no other value', async () => {
    for (const path of ['/drain', '/release']) {
      const ask = (value: string) =>
        send(world().management, 'GET', path, { headers: { 'agent-commerce-hook': value } });
      for (const value of ['1', 'TEST-KEY', 'test-keys', 'test-ke']) await ask(value).expect(403);
      await ask('test-key').expect(200);
    }
  });
});

describe('the hooks of the management app', () => {
  const hooks: string[] = [];
  const run = async (name: string): Promise<void> => void hooks.push(name);
  const world = sharedRoutes({}, { drain: () => run('drain'), release: () => run('release') });
  const HOOK = { 'agent-commerce-hook': '1' };
  beforeEach(() => void hooks.splice(0));

  for (const name of ['drain', 'release']) {
    it(`/${name} runs for a request with the header of hooks, and not for a look with HEAD`, async () => {
      await send(world().management, 'GET', `/${name}`, { headers: HOOK }).expect(200);
      await send(world().management, 'HEAD', `/${name}`, { headers: HOOK }).expect(405);
      assert.deepEqual(hooks, [name]);
    });

    it(`/${name} refuses whatever a page can make a browser send, and says what a hook sends`, async () => {
      const pages = [
        {},
        { 'agent-commerce-hook': 'true' },
        { 'agent-commerce-hook': '' },
        { 'agent-commerce-hook': ['1', '1'] },
        { ...HOOK, origin: 'https://evil.example' },
        { ...HOOK, origin: 'null' },
        { ...HOOK, 'sec-fetch-site': 'cross-site' },
        { ...HOOK, 'sec-fetch-mode': 'no-cors' },
        { ...HOOK, 'Sec-Fetch-Dest': 'image' },
        { ...HOOK, host: 'rebound.example:8403' },
        { ...HOOK, host: '10.1.2.3.rebound.example' },
      ];
      for (const headers of pages) {
        const answer = await send(world().management, 'GET', `/${name}`, { headers }).expect(403);
        envelope('FORBIDDEN')(answer);
        assert.match(answer.text, /needs the header Agent-Commerce-Hook with the value of GATEWAY_HOOK_KEY/);
      }
      assert.deepEqual(hooks, []);
    });

    it(`/${name} permits no page the header in a preflight`, async () => {
      const asked = { origin: 'https://evil.example', 'access-control-request-headers': 'agent-commerce-hook' };
      const headers = { ...asked, 'access-control-request-method': 'GET' };
      const answer = await send(world().management, 'OPTIONS', `/${name}`, { headers }).expect(405);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
      assert.equal(answer.headers['access-control-allow-headers'], undefined);
    });
  }
});
