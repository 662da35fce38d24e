// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { callTool, postMcp } from '../../../spec/adapters/mcp/post.ts';
import { changed, load, problemsOfText } from '../../../spec/config/document/document.ts';
import { ask } from '../../../spec/e2e/ask.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack, proven } from '../catalogue.ts';
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

  proven('A3', 'spec/adapters/a2a/request.spec.ts', 'throws for no value in any position of a message');
  proven('A3', 'spec/adapters/a2a/request.spec.ts', '5 a notification runs nothing');
});

describe('attacks with mandates', () => {
  proven('A1', 'verification/mandates/flips.spec.ts', 'is never accepted as a new mandate');
  proven(
    'A1',
    'spec/e2e/mandates-refused.spec.ts',
    'the same mandate buys once; the second payment is not touched and buys with another',
  );
  proven(
    'A1',
    'spec/e2e/mandates-store-loss.spec.ts',
    'is refused under a fresh checkout as well when it is open, the log states why, and the operator may accept it',
  );
  proven('A2', 'spec/e2e/mandates-refused.spec.ts', 'one open mandate, closed twice, buys once');
  proven('A2', 'spec/e2e/mandates-race.spec.ts', 'copies of one call share one mandate and one settlement');
  proven('A2', 'spec/e2e/mandates-policy.spec.ts', 'refuses any other payment of the same payer, and takes the one');
});

describe('texts and prices of a configuration', () => {
  proven(['A8', 'I1'], 'spec/resources/schemas/text.spec.ts', 'refuses ${JSON.stringify(bad)}');
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
  const amounts = 'spec/payments/pricing/amount.spec.ts';
  proven('X20', amounts, 'reads ${text.slice(0, 20)} with ${decimals} decimals exactly');
  proven('X20', amounts, 'refuses ${JSON.stringify(text.slice(0, 20))} with ${decimals} decimals as ${reason}');
  proven('X20', amounts, 'reads any text as a second parser does, or refuses it');
});
