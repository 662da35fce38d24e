import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { callTool, postMcp } from '../../../spec/adapters/mcp/post.ts';
import { changed, load, problemsOfText } from '../../../spec/config/document/document.ts';
import { ask } from '../../../spec/e2e/ask.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack } from '../catalogue.ts';
import { ALL_CHANNELS } from './channels.ts';

describe('messages that ask for more than a call', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());

  attack('A5', 'an unknown session, a batch, an id to resume from: no state is kept between requests', async () => {
    const { url } = testbed.gateway;
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    for (const headers of [{ 'mcp-session-id': 'fixed' }, { 'last-event-id': '1' }, {}]) {
      const answer = await postMcp(url, body, headers as Record<string, string>);
      assert.equal(answer.headers['mcp-session-id'], undefined);
    }
    const batch = await postMcp(
      url,
      Array.from({ length: 1_000 }, (_, id) => ({ ...body, id })),
    );
    assert.equal((JSON.parse(batch.text) as { error: { code: number } }).error.code, -32600);
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const answer = await postMcp(url, { ...body, method: 'tools/call', params: { name, arguments: {} } });
      assert.equal((JSON.parse(answer.text) as { error: { code: number } }).error.code, -32602, name);
    }
    const stream = await ask(url, { method: 'GET', path: '/mcp', headers: { accept: 'text/event-stream' } });
    assert.equal(stream.status, 405);
  });

  attack('A4', 'a proof inside the input is removed: neither the backend nor the log gets it', async () => {
    const { backend, gateway } = testbed;
    const proof = await testbed.proof('echo', { word: 'x' });
    backend.forget();
    const bought = await callTool(gateway.url, 'echo', { word: 'x', _payment: proof });
    assert.deepEqual(bought.structuredContent, { word: 'x' });
    const free = await callTool(gateway.url, 'free_echo', { word: 'y', _payment: proof });
    assert.deepEqual(free.structuredContent, { word: 'y' });
    const seen = backend.requests.map(({ url, rawHeaders, body }) => [url, ...rawHeaders, body.toString()].join());
    assert.equal(seen.length, 2);
    for (const sink of [...seen, ...gateway.logLines])
      assert.ok(!sink.includes(proof.slice(0, 40)) && !sink.includes('_payment'));
  });
});

describe('texts and prices of a configuration', () => {
  attack(['A8', 'I1'], 'a name or description that hides text is refused', () => {
    for (const member of ['name', 'description']) {
      const problems = problemsOfText(JSON.stringify(changed({ [`resources.report.${member}`]: 'Report\u202e' })));
      assert.ok(
        problems.some(({ path }) => path.startsWith('resources.report')),
        `${member}: ${JSON.stringify(problems)}`,
      );
    }
  });

  for (const amount of ['0', '0.0', '1e400', '0.0000004', 0.01, 1e-7, null, ['0.01'], true])
    attack('X20', `a price of ${JSON.stringify(amount)} is refused at start, not rounded`, () => {
      const document = changed({ 'resources.report.pricing.amount': amount });
      assert.ok(problemsOfText(JSON.stringify(document)).length > 0);
    });
  attack('X20', 'a price beyond the integers of a double is exact', () => {
    const [resource] = load({ 'resources.report.pricing.amount': '9007199254740993' }).resources;
    assert.equal(resource?.pricing.type === 'fixed' && resource.pricing.units, 9_007_199_254_740_993_000_000n);
  });
});
