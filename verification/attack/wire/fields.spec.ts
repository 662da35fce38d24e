// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { attack, proven } from '../catalogue.ts';
import { formOf, openTarget, type ProofMaker, proofMaker, spelledAt, type Target } from '../target.ts';
import { FIELDS_TO_THE_MERCHANT, fieldNames } from './backend-fields.ts';
import { answerTo, HOST, head, JSON_TYPE, type WireAnswer } from './conversation.ts';

const INVOKE = (id: string): string => `POST /api/resources/${id}/invoke HTTP/1.1`;
const call = (id: string, ...lines: readonly string[]): string =>
  `${head(INVOKE(id), HOST, JSON_TYPE, 'Content-Length: 2', ...lines)}{}`;
const header = ({ headers }: WireAnswer, name: string): string | undefined => headers.get(name)?.join(' | ');
const bodyOf = ({ body }: WireAnswer): { readonly [member: string]: unknown } => JSON.parse(body.toString());

/** Twelve fields that a sender may nominate in Connection so that a proxy removes them. */
const NOMINATED = [
  'Authorization',
  'Agent-Authorization',
  'Payment-Signature',
  'Idempotency-Key',
  'X-Request-Id',
  'Content-Type',
  'Cookie',
  'Proxy-Authorization',
  'X-Forwarded-For',
  'Agent-Commerce-Payer',
  'X-Secret',
  'Origin-Secret',
];

describe('fields of the caller', () => {
  let target: Target;
  let proofs: ProofMaker;
  before(async () => {
    target = await openTarget();
    proofs = await proofMaker(target);
  });
  after(() => target.stop());

  attack('H2', 'twelve nominated fields are not forwarded, and are read as if they were not nominated', async () => {
    target.backend.forget();
    const own: Readonly<Record<string, string>> = { 'X-Request-Id': 'nominated-1', 'Content-Type': 'application/json' };
    const lines = NOMINATED.map((name) => `${name}: ${own[name] ?? `planted-${name}`}`);
    const bytes = `${head(INVOKE('free_echo'), HOST, 'Content-Length: 2', ...lines, `Connection: close, ${NOMINATED.join(', ')}`)}{}`;
    const answer = await answerTo(target.url, bytes);
    assert.equal(answer.status, 200);
    assert.equal(header(answer, 'x-request-id'), 'nominated-1');
    const [request, ...others] = target.backend.requests;
    assert.ok(request !== undefined && others.length === 0);
    for (const name of fieldNames(request)) assert.ok(FIELDS_TO_THE_MERCHANT.has(name), name);
    assert.equal(request.headers['x-request-id'], 'nominated-1');
    assert.ok(!request.rawHeaders.some((value) => value.includes('planted')));
    assert.ok(!/payment|secret|authorization/i.test(request.headers.connection ?? ''));
  });

  attack('H2', 'a nominated proof pays, and a nomination without a proof does not', async () => {
    const proof = await proofs.proof('echo');
    const lines = [`Payment-Signature: ${proof}`, 'Connection: close, Payment-Signature'];
    const paid = await answerTo(target.url, call('echo', ...lines));
    assert.equal(paid.status, 200);
    assert.ok(header(paid, 'payment-response'));
    assert.equal((await answerTo(target.url, call('echo', 'Connection: close, Payment-Signature'))).status, 402);
  });

  for (const name of [
    'Authorization',
    'Agent-Authorization',
    'Content-Type',
    'Content-Length',
    'Host',
    'Last-Event-ID',
  ])
    for (const other of ['the same', 'another'])
      attack('H3', `${name} twice, ${other} value, is one refused request`, async () => {
        target.backend.forget();
        const own: Readonly<Record<string, string>> = {
          'Content-Type': 'application/json',
          'Content-Length': '2',
          Host: 'shop',
        };
        const value = own[name] ?? 'Bearer a';
        const second = other === 'the same' ? value : value === '2' ? '3' : `${value}-b`;
        const lines = own[name] === undefined ? [`${name}: ${value}`, `${name}: ${second}`] : [`${name}: ${second}`];
        const answer = await answerTo(target.url, call('free_echo', ...lines));
        assert.deepEqual([answer.status, formOf(answer)], [400, 'envelope']);
        assert.equal(target.backend.requests.length, 0);
      });

  attack('H3', 'PAYMENT-SIGNATURE twice is no proof, and settles nothing', async () => {
    const before = await target.chain.balanceOf(target.payTo);
    const [one, two] = [await proofs.proof('echo'), await proofs.proof('echo')];
    for (const second of [one, two]) {
      const answer = await answerTo(
        target.url,
        call('echo', `Payment-Signature: ${one}`, `Payment-Signature: ${second}`),
      );
      assert.equal(answer.status, 402);
      assert.equal((bodyOf(answer)['error'] as { reason: string }).reason, 'invalid_payload');
    }
    assert.equal(await target.chain.balanceOf(target.payTo), before);
  });

  attack('H3', 'Idempotency-Key twice is refused before money moves', async () => {
    const before = await target.chain.balanceOf(target.payTo);
    const lines = [`Payment-Signature: ${await proofs.proof('echo')}`, 'Idempotency-Key: a', 'Idempotency-Key: a'];
    const answer = await answerTo(target.url, call('echo', ...lines));
    assert.deepEqual([answer.status, formOf(answer)], [400, 'envelope']);
    assert.equal(await target.chain.balanceOf(target.payTo), before);
  });

  attack('H3', 'A2A-Version and MCP-Protocol-Version twice are refused by their channels', async () => {
    const send = (path: string, body: string, ...lines: readonly string[]): Promise<WireAnswer> =>
      answerTo(
        target.url,
        head(`POST ${path} HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${body.length}`, ...lines) + body,
      );
    const message = '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{}}}';
    const a2a = await send('/a2a', message, 'A2A-Version: 1.0', 'A2A-Version: 1.0');
    assert.equal((bodyOf(a2a)['error'] as { code: number }).code, -32004);
    const list =
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}';
    const modern = ['MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/list'];
    const mcp = await send('/mcp', list, ...modern, 'MCP-Protocol-Version: 2026-07-28');
    assert.equal(formOf(mcp), 'rpc error');
  });

  proven(
    'H4',
    'spec/routes/request-id.spec.ts',
    "${route.method} ${route.path} (${route.app}) is the caller's when it is legal, else a new one",
  );
  attack('H4', 'an X-Request-Id with a carriage return is never echoed', async () => {
    const answer = await answerTo(target.url, call('free_echo', 'X-Request-Id: a\rb', 'Connection: close'));
    assert.match(header(answer, 'x-request-id') ?? '', /^req_[0-9a-f-]{36}$/);
  });

  for (const [length, status] of [
    [8_191, 200],
    [8_192, 200],
    [8_194, 402],
  ] as const)
    attack('H5', `a good proof of ${length} bytes is answered ${status}`, async () => {
      const proof = spelledAt(await proofs.proof('echo'), length);
      assert.equal(proof.length, length);
      const answer = await answerTo(target.url, call('echo', `Payment-Signature: ${proof}`));
      assert.equal(answer.status, status);
      if (status === 402) assert.equal((bodyOf(answer)['error'] as { reason: string }).reason, 'invalid_payload');
    });

  attack('H5', 'two proofs of 8 KiB fit into one head', async () => {
    const lines = [
      `Payment-Signature: ${spelledAt(await proofs.proof('echo'), 8_192)}`,
      `Agent-Authorization: ${'B'.repeat(8_192)}`,
    ];
    assert.equal((await answerTo(target.url, call('echo', ...lines))).status, 200);
  });
});

describe('host names that are not listed', () => {
  const [origin, cors] = ['spec/server/http/origin.spec.ts', 'spec/routes/cors.spec.ts'];
  proven('H8', origin, "\"${host}\" is ${served ? 'served' : 'refused'}");
  proven('H8', origin, 'the host of a target in absolute form counts too: neither hides the other');
  proven(
    ['H8', 'I10'],
    cors,
    "${route.method} ${route.path} (${route.app}) is ${isForProbes(route) ? 'answered to' : '403 for'} any other",
  );
  proven(
    ['H8', 'I10', 'O5'],
    cors,
    '${title}: of any other origin are 403 without CORS headers, also when they ask before',
  );
  proven(
    'O5',
    cors,
    '${title}: of a listed origin are answered, may read the payment headers, and send no credentials',
  );
  proven('O5', origin, '"${origin}" is ${verdict}');

  attack('H8', 'the URL of the resource in an offer comes from the configuration, never from the Host', async () => {
    const open = await openTarget();
    try {
      const line = 'POST /api/resources/echo/invoke HTTP/1.1';
      const bytes = `${head(line, 'Host: evil.test', 'X-Forwarded-Host: evil.test', 'Forwarded: host=evil.test', JSON_TYPE, 'Content-Length: 2')}{}`;
      const challenge = await answerTo(open.url, bytes);
      assert.equal(challenge.status, 402);
      const required = Buffer.from(challenge.headers.get('payment-required')?.[0] ?? '', 'base64').toString();
      assert.ok(required.includes(`${open.url}/api/resources/echo/invoke`));
      assert.ok(!required.includes('evil') && !challenge.body.includes('evil'));
      const card = await answerTo(open.url, head('GET /.well-known/agent-card.json HTTP/1.1', 'Host: evil.test'));
      assert.ok(!card.body.includes('evil'));
    } finally {
      await open.stop();
    }
  });
});
