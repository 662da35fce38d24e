import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { SampleRequest } from '../../../spec/support/sample-backend.ts';
import { attack, measured } from '../catalogue.ts';
import { formOf, openTarget, proofMaker, type Target } from '../target.ts';
import {
  answerTo,
  converse,
  ECHO,
  EMPTY,
  ENTRANCES,
  echo,
  type FramingCase,
  HOST,
  head,
  JSON_TYPE,
  numbered,
  type WireReading,
} from './conversation.ts';
import { HEAD_CASES, LENGTH_CASES } from './framing-cases.ts';

const CASES = [...LENGTH_CASES, ...HEAD_CASES];

/**
 * The only fields that the backend may get for a call without payment, over any channel (contract
 * 3, headers to the backend).
 */
const FIELDS_TO_THE_MERCHANT: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-type',
  'content-length',
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'tracestate',
  'agent-commerce-protocol',
  'agent-commerce-resource',
]);

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

/** For cases without an answer. */
const RESET_AFTER_MS = 100;

describe('bytes that two parsers read differently', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  for (const [number, played] of CASES.entries())
    attack('H1', played.name, async (t) => {
      await playFraming(target.url, played, number);
      measured(t, 'framing cases', 1);
    });

  attack('H1', 'the backend got exactly the intended calls, each as a new message of the gateway', async (t) => {
    await target.stillSells();
    const requests = target.backend.requests.filter(({ body }) => body.toString() !== '{"still":"sells"}');
    const [got, meant] = [marksOf(requests), meantBy(CASES)];
    const differing = got.filter((mark) => !meant.includes(mark)).length + (meant.length - new Set(got).size);
    measured(t, 'differing views of the backend', Math.abs(differing));
    assert.deepEqual(got, meant);
    for (const request of requests) {
      assert.deepEqual(
        fieldNames(request).filter((name) => !FIELDS_TO_THE_MERCHANT.has(name)),
        [],
      );
      assert.equal(request.headers['content-length'], String(request.body.length));
      assert.equal(request.headers['transfer-encoding'], undefined);
    }
  });

  attack('H2', 'twelve nominated fields are not forwarded, and are read as if they were not nominated', async () => {
    target.backend.forget();
    const own: Readonly<Record<string, string>> = { 'X-Request-Id': 'nominated-1', 'Content-Type': 'application/json' };
    const lines = NOMINATED.map((name) => `${name}: ${own[name] ?? `planted-${name}`}`);
    lines.push('Content-Length: 2', `Connection: close, ${NOMINATED.join(', ')}`);
    const { status, headers } = await answerTo(target.url, head(ECHO, HOST, ...lines).concat('{}'));
    assert.deepEqual([status, headers.get('x-request-id')], [200, ['nominated-1']]);
    const [request, ...others] = target.backend.requests;
    assert.ok(request !== undefined && others.length === 0);
    for (const name of fieldNames(request)) assert.ok(FIELDS_TO_THE_MERCHANT.has(name), name);
    assert.equal(request.headers['x-request-id'], 'nominated-1');
    assert.ok(!request.rawHeaders.some((value) => value.includes('planted')));
    assert.ok(!/payment|secret|authorization/i.test(request.headers.connection ?? ''));
  });

  attack('H2', 'a nominated proof pays, and a nomination without a proof does not', async () => {
    const { proof } = await proofMaker(target);
    const call = (...lines: readonly string[]) =>
      answerTo(target.url, echo(['Content-Length: 2', 'Connection: close, Payment-Signature', ...lines], '{}', 'echo'));
    const paid = await call(`Payment-Signature: ${await proof('echo')}`);
    assert.equal(paid.status, 200);
    assert.ok(paid.headers.has('payment-response'));
    assert.equal((await call()).status, 402);
  });

  attack('H3', 'A2A-Version and MCP-Protocol-Version twice are refused by their channels', async () => {
    const send = (path: string, body: string, ...lines: readonly string[]) =>
      answerTo(
        target.url,
        head(`POST ${path} HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${body.length}`, ...lines) + body,
      );
    const message = '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{}}}';
    const a2a = await send('/a2a', message, 'A2A-Version: 1.0', 'A2A-Version: 1.0');
    assert.equal((JSON.parse(a2a.body.toString()) as { error: { code: number } }).error.code, -32004);
    const list =
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}';
    const modern = ['MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/list'];
    assert.equal(formOf(await send('/mcp', list, ...modern, 'MCP-Protocol-Version: 2026-07-28')), 'rpc error');
  });

  attack(['P3', 'H8', 'I12'], 'no header of the caller changes the host or path of the backend', async () => {
    const { host } = new URL(target.backend.url);
    const names = ['Forwarded', 'X-Forwarded-Host', 'X-Host', 'X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Server'];
    const lines = [JSON_TYPE, ...names.map((name) => `${name}: host=evil.test`)];
    for (const entrance of ENTRANCES) {
      target.backend.forget();
      await answerTo(target.url, entrance.request(entrance.around('{}'), lines));
      const [request] = target.backend.requests;
      assert.deepEqual([request?.url, request?.headers.host], ['/echo', host], entrance.name);
    }
  });

  attack(
    ['H1', 'P7'],
    'after any bytes, answered or not, a reset ends its own connection and nothing else',
    async () => {
      for (const [number, { sends }] of CASES.entries())
        for (const answers of [0, 1]) {
          const conversation = await converse(target.url);
          conversation.send(numbered(sends, number));
          await conversation.until(answers, RESET_AFTER_MS);
          conversation.reset();
        }
      await target.stillSells();
    },
  );
});

/**
 * How long the end of a connection may take, and how long an open one is watched for another
 * answer, milliseconds.
 */
const END_MS = 3_000;

/**
 * Plays a case on a connection of its own, and checks the answers and the state of the connection.
 */
async function playFraming(url: string, played: FramingCase, number: number): Promise<void> {
  const { answered, leaves, finishes = false, bodiless = [] } = played;
  const bytes = numbered(played.sends, number);
  const conversation = await converse(url, bodiless);
  try {
    for (const piece of played.byByte === true ? bytes : [bytes]) conversation.send(piece);
    if (finishes) conversation.finish();
    const more = leaves === 'closed' ? 1 : 0;
    const received = await conversation.until(answered.length + more, END_MS);
    assert.deepEqual(statuses(received), answered, received.rest.toString('latin1', 0, 200));
    for (const answer of received.answers) assert.ok(formOf(answer), `no known form: ${answer.body.toString()}`);
    assert.equal(received.rest.length, 0, 'bytes behind the last answer');
    assert.equal(conversation.ended() ? 'closed' : 'open', leaves);
    if (leaves === 'closed') return;
    conversation.send(head('GET /health HTTP/1.1', HOST));
    const { answers } = await conversation.until(answered.length + 1, END_MS);
    assert.equal(answers.length, answered.length + 1, 'the connection answers again');
    assert.equal(answers.at(-1)?.body.toString(), '{"status":"ok"}', 'each request has its own answer');
  } finally {
    conversation.close();
  }
}

function statuses({ answers }: WireReading): readonly number[] {
  return answers.map(({ status }) => status);
}

/** Names as on the wire, in lower case. */
function fieldNames({ rawHeaders }: SampleRequest): readonly string[] {
  return rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
}

/** The marks of the calls that must reach the backend in these cases, sorted. */
function meantBy(cases: readonly FramingCase[]): readonly string[] {
  return cases
    .flatMap(({ meant = [] }, number) => meant.map((mark) => (mark === EMPTY ? mark : numbered(`${mark}#000`, number))))
    .sort();
}

/** The marks of the calls that reached the backend, sorted. */
function marksOf(requests: readonly SampleRequest[]): readonly string[] {
  return requests.map(({ body }) => /^\{"mark":"([^"]*)"\}$/.exec(body.toString())?.[1] ?? body.toString()).sort();
}
