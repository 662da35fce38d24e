import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { message, postA2a, sendMessage, VERSION } from '../../adapters/a2a/post.ts';
import { callTool, postMcp } from '../../adapters/mcp/post.ts';
import { type Answered, ask, assertEnvelope } from '../../e2e/ask.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';

const BURST = 20;
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

describe('the rate limit of a client', () => {
  let testbed: Testbed;
  let base: string;
  before(async () => {
    const overrides = {
      limits: { rate: { perSecond: 1, burst: BURST } },
      server: { trustProxy: 1 },
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
    };
    testbed = await openTestbed({ overrides });
    base = testbed.gateway.url;
  });
  after(() => testbed.close());

  /** A client of its own for each rule. */
  const as = (client: string): Readonly<Record<string, string>> => ({ 'x-forwarded-for': client });
  const invoke = (id: string, headers: Readonly<Record<string, string>>, body = '{}'): Promise<Answered> =>
    ask(base, {
      path: `/api/resources/${id}/invoke`,
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
  const leftOf = (answer: Answered): number => Number(/;r=(\d+)/.exec(String(answer.headers['ratelimit']))?.[1]);

  const CALLS: Readonly<Record<string, (headers: Readonly<Record<string, string>>) => Promise<Answered>>> = {
    'free invokes': (headers) => invoke('cities', headers),
    challenges: (headers) => invoke('price_list', headers),
    'invokes of what does not exist': (headers) => invoke('nothing_here', headers),
    'proofs that are garbage': (headers) => invoke('price_list', { ...headers, 'payment-signature': 'e30=' }),
    'messages of MCP': (headers) => postMcp(base, PING, headers),
    'messages of A2A': (headers) => postA2a(base, sendMessage(message('cities')), { ...VERSION, ...headers }),
    'bodies that are too large': (headers) => invoke('cities', headers, ' '.repeat(300_000)),
  };
  for (const [what, call] of Object.entries(CALLS))
    it(`counts ${what}, and answers 429 with the envelope when the burst is spent`, async () => {
      const headers = as(`203.0.113.${Object.keys(CALLS).indexOf(what) + 1}`);
      const answers = await Promise.all(Array.from({ length: BURST + 15 }, () => call(headers)));
      const refused = answers.filter(({ status }) => status === 429);
      assert.ok(refused.length > 0 && refused.length <= 15, `${refused.length} were refused`);
      for (const answer of answers) assert.equal(answer.headers['ratelimit-policy'], `"ip";q=${BURST};w=${BURST}`);
      for (const answer of refused) {
        assert.equal(assertEnvelope(answer, 'RATE_LIMITED')['retryable'], true);
        assert.equal(answer.headers['retry-after'], '1');
        assert.equal(answer.headers['ratelimit'], '"ip";r=0;t=1');
      }
    });

  it('shows what is left before it is spent', async () => {
    const first = await invoke('cities', as('203.0.113.20'));
    assert.deepEqual([first.headers['ratelimit'], first.status], [`"ip";r=${BURST - 1};t=1`, 200]);
    assert.equal(first.headers['retry-after'], undefined);
  });

  it('a paid call that is delivered gets its token back, over every adapter', async () => {
    const proofs = await Promise.all(Array.from({ length: 9 }, (_, index) => testbed.proof('echo', { index })));
    const headers = as('203.0.113.30');
    for (const [index, proof] of proofs.entries()) {
      const input = { index };
      if (index % 3 === 0) {
        const paid = await invoke('echo', { ...headers, 'payment-signature': proof }, JSON.stringify(input));
        assert.equal(paid.status, 200, paid.text);
      } else if (index % 3 === 1) {
        assert.equal((await callTool(base, 'echo', { ...input, _payment: proof }, { headers })).isError, undefined);
      } else {
        const bought = sendMessage(message('echo', { ...input, _payment: proof }));
        assert.match((await postA2a(base, bought, { ...VERSION, ...headers })).text, /TASK_STATE_COMPLETED/);
      }
    }
    assert.equal(leftOf(await invoke('cities', headers)), BURST - 1);
  });

  it('a paid call that is not delivered counts', async () => {
    const headers = as('203.0.113.31');
    for (let times = 0; times < 6; times += 1) {
      const proof = await testbed.proof('failing_post', { status: 500 });
      const failed = await invoke('failing_post', { ...headers, 'payment-signature': proof }, '{"status":500}');
      assert.equal(failed.status, 502);
    }
    assert.ok(leftOf(await invoke('cities', headers)) < BURST - 2);
  });

  it('probes, operators, the listing and discovery are never counted', async () => {
    const headers = as('203.0.113.40');
    await Promise.all(Array.from({ length: BURST + 5 }, () => invoke('cities', headers)));
    for (const path of [
      '/health',
      '/ready',
      '/api/resources',
      '/.well-known/agent-commerce',
      '/.well-known/agent-card.json',
    ]) {
      const answer = await ask(base, { method: 'GET', path, headers });
      assert.deepEqual([answer.status, answer.headers['ratelimit']], [200, undefined], path);
    }
    assert.equal((await testbed.gateway.operator('/api/events')).status, 200);
  });

  it('metrics count the refused calls', async () => {
    const headers = as('203.0.113.45');
    const counted = async (): Promise<number> => {
      const text = await readMetrics(testbed.gateway.managementUrl);
      return Number(/^acg_rate_limited_total\{what="call"\} (\d+)$/m.exec(text)?.[1]);
    };
    const before = await counted();
    const answers = await Promise.all(Array.from({ length: BURST + 5 }, () => invoke('cities', headers)));
    assert.equal((await counted()) - before, answers.filter(({ status }) => status === 429).length);
  });

  it('a refused call is not read and does not reach the backend', async () => {
    const headers = as('203.0.113.50');
    await Promise.all(Array.from({ length: BURST + 5 }, () => invoke('cities', headers)));
    testbed.backend.forget();
    const answers = await Promise.all(Array.from({ length: 5 }, () => invoke('free_echo', headers, '{')));
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0);
    assert.equal(testbed.backend.requests.length, 0);
  });
});

describe('without a rate limit', () => {
  it('no call is counted and no header names a limit', async () => {
    const testbed = await openTestbed();
    try {
      const answers = await Promise.all(Array.from({ length: 300 }, () => testbed.gateway.invoke('cities')));
      for (const answer of answers) {
        assert.deepEqual([answer.status, answer.headers.get('ratelimit')], [200, null]);
        await answer.arrayBuffer();
      }
    } finally {
      await testbed.close();
    }
  });
});
