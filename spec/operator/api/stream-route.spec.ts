import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, it } from 'node:test';
import { eventually } from '../../support/records.ts';
import { append, atRest, openEmbeddedBed as bed, TOKEN } from './stream-bed.ts';

const ROUTE = '/api/events/stream';

interface Refusal {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly code: string;
  readonly body: { readonly requestId: string; readonly details?: { readonly field?: string } };
}

/** Asks for the stream in a way that is refused. */
async function refused(
  url: string,
  { method = 'GET', path = ROUTE, headers = [] }: { method?: string; path?: string; headers?: readonly string[] },
): Promise<Refusal> {
  const request = http.request(`${url}${path}`, { method, agent: false, headers: [...headers] });
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject).end();
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  const body = JSON.parse(text);
  return { status: response.statusCode ?? 0, headers: response.headers, code: body.code, body };
}

const AUTHORIZED = ['Host', 'shop', 'Authorization', `Bearer ${TOKEN}`];

describe('a request for the stream', () => {
  it('HEAD: the head alone, and no slot is taken', async (t) => {
    const { url, stream } = await bed(t, { maxStreams: 1 });
    for (let round = 0; round < 3; round += 1) {
      const answer = await fetch(`${url}${ROUTE}`, { method: 'HEAD', headers: { authorization: `Bearer ${TOKEN}` } });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-type'), 'text/event-stream');
      assert.equal(await answer.text(), '');
      assert.equal(stream.facts().readers, 0);
    }
  });

  const positions: readonly (readonly [name: string, values: readonly string[]])[] = [
    ['empty', ['']],
    ['no id', ['first']],
    ['without its prefix', ['1700000000000-0']],
    ['without a sequence', ['evt_1700000000000']],
    ['with a range of Redis', ['evt_(1-0']],
    ['with a sign', ['evt_-1-0']],
    ['with 17 digits of milliseconds', ['evt_12345678901234567-0']],
    ['with 11 digits of sequence', ['evt_1-12345678901']],
    ['with something behind it', ['evt_1-0 ,']],
    ['with something before it', ['* evt_1-1']],
    ['with a quote', ["evt_1-1'"]],
    ['with three parts', ['evt_1-1-1']],
    ['with a digit of another script', ['evt_\xb2-1']],
    ['with a prefix in capitals', ['EVT_1-1']],
    ['of Redis for new entries', ['$']],
    ['of Redis for the last entry', ['+']],
    ['twice', ['evt_1-0', 'evt_2-0']],
    ['twice the same', ['evt_1-0', 'evt_1-0']],
  ];
  for (const [name, values] of positions)
    it(`Last-Event-ID ${name} is refused`, async (t) => {
      const { url, stream } = await bed(t);
      const headers = [...AUTHORIZED, ...values.flatMap((value) => ['Last-Event-ID', value])];
      const { status, code, body } = await refused(url, { headers });
      assert.deepEqual([status, code, body.details?.field], [400, 'INPUT_INVALID', 'Last-Event-ID']);
      assert.equal(stream.facts().readers, 0);
    });

  it('16 digits of milliseconds and 10 of sequence are a position', async (t) => {
    const { open } = await bed(t);
    assert.equal((await open('evt_1234567890123456-1234567890')).status, 200);
  });
});

describe('the slots of the stream', () => {
  it('leave one to others; the next reader gets Retry-After 5 s, and a slot that was left is free again', async (t) => {
    const { url, open, stream } = await bed(t, { maxStreams: 3 });
    const [first] = await Promise.all([open(), open()]);
    const { status, code, headers } = await refused(url, { headers: AUTHORIZED });
    assert.deepEqual([status, code, headers['retry-after']], [503, 'GATEWAY_BUSY', '5']);
    const head = await fetch(`${url}${ROUTE}`, { method: 'HEAD', headers: { authorization: `Bearer ${TOKEN}` } });
    assert.equal(head.status, 503);
    assert.equal(stream.facts().readers, 2);
    first?.leave();
    await eventually(async () => (stream.facts().readers === 1 ? true : undefined), 'a slot');
    assert.equal((await open()).status, 200);
  });

  it('are not taken by a refused request', async (t) => {
    const { url, open } = await bed(t, { maxStreams: 1 });
    await refused(url, { headers: ['Host', 'shop'] });
    await refused(url, { headers: [...AUTHORIZED, 'Last-Event-ID', 'first'] });
    await refused(url, { method: 'POST', headers: AUTHORIZED });
    assert.equal((await open()).status, 200);
  });
});

describe('the stream and the end of the process', () => {
  const bounds = { propagationMs: 0, finishMs: 5_000, stopListening: () => undefined };

  it('ends with a last comment when the drain begins, and a new one is sent to another process', async (t) => {
    const { url, open, store, lifecycle, stream } = await bed(t);
    const [first = ''] = await append(store, 3);
    const clients = [await open(), await open(first)];
    await clients[1]?.until(({ ids }) => ids().length === 2, 'old events');
    const drained = lifecycle.drain(bounds);
    for (const client of clients) {
      await client.ended;
      assert.ok(client.text().endsWith('\n\n: draining\n\n'), client.text());
    }
    await drained;
    const { status, code, headers } = await refused(url, { headers: AUTHORIZED });
    assert.deepEqual([status, code, headers['retry-after']], [503, 'GATEWAY_BUSY', '1']);
    assert.equal(stream.facts().readers, 0);
  });

  it('does not wait for a reader that does not read', async (t) => {
    const { openUnread, store, lifecycle, stream, written, unsent } = await bed(t);
    await openUnread(t);
    await eventually(async () => (stream.facts().readers === 1 ? true : undefined), 'a reader');
    // Until the sockets are full, and not so much that the reader is cut.
    while (unsent() === 0) {
      await append(store, 50, { data: { text: 'x'.repeat(1_900) } });
      await atRest(written);
    }
    assert.equal(stream.facts().cut, 0);
    const at = performance.now();
    await lifecycle.drain(bounds);
    await eventually(async () => (stream.facts().readers === 0 ? true : undefined), 'no reader');
    assert.ok(performance.now() - at < 2_000, 'the reader delays the drain');
  });
});
