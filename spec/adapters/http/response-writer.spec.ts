import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { fittingHead, httpResponseWriter } from '../../../src/adapters/http/response-writer.ts';
import { USUAL_ROOM } from '../../../src/payments/x402/wire/challenge.ts';
import { decodeHeader } from '../../../src/payments/x402/wire/proof.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import type { Relayed, RelayOptions } from '../../../src/pipeline/call.ts';
import { fieldBytes, fieldsBytes } from '../../../src/server/http/respond.ts';
import { rest } from '../../payments/settlement/virtual-time.ts';

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** Relays a body to a client on a socket. */
async function relaying(body: PassThrough, sending?: RelayOptions['sending']) {
  const relayed = Promise.withResolvers<Relayed>();
  const received = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const read: Buffer[] = [];
  const server = http.createServer((_request, response) => {
    response.once('close', left.resolve);
    // A second reader beside the pipe, like the one that keeps answers.
    if (sending !== undefined) body.on('data', (chunk: Buffer) => void read.push(chunk));
    httpResponseWriter(response as unknown as Response, 'r')
      .relay({ status: 200, headers: {}, body }, sending === undefined ? {} : { sending })
      .then(relayed.resolve, relayed.reject);
    received.resolve();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const ended = once(socket, 'close');
  let arrived = '';
  socket.on('data', (chunk) => {
    arrived += String(chunk);
  });
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const stop = async (): Promise<void> => {
    socket.destroy();
    server.close();
    await once(server, 'close');
  };
  const done = { relayed: relayed.promise, received: received.promise, left: left.promise, ended };
  return { ...done, read, socket, arrived: () => arrived, stop };
}

describe('the relay of an answer whose caller left', () => {
  it('reads it to its end, and leaves no timer', async () => {
    const body = new PassThrough();
    const call = await relaying(body);
    body.write('first');
    await once(call.socket, 'data');
    call.socket.destroy();
    await call.left;
    const before = timers();
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'client_gone' });
    assert.ok(timers() <= before, 'no timer waits for the caller');
    await call.stop();
  });
});

describe('the relay of an answer that waits for `sending`', () => {
  const waiting = async (body: PassThrough) => {
    const asked = Promise.withResolvers<void>();
    const mark = Promise.withResolvers<boolean>();
    const call = await relaying(body, () => {
      asked.resolve();
      return mark.promise;
    });
    return { ...call, asked: asked.promise, mark };
  };

  it('sends nothing where it resolves false, and ends the connection', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.end('whole');
    await call.asked;
    call.mark.resolve(false);
    assert.deepEqual(await call.relayed, { kind: 'client_gone', sent: { begun: false, bytes: 0, of: 5 } });
    assert.equal(call.arrived(), '');
    await call.stop();
  });

  it('sends nothing before it, and afterwards every byte once', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.write('first,');
    await call.asked;
    body.write('second,');
    await rest();
    assert.equal(call.arrived(), '');
    call.mark.resolve(true);
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'finished' });
    await call.ended;
    assert.match(call.arrived(), /first,.*second,.*last/s);
    assert.equal(Buffer.concat(call.read).toString(), 'first,second,last');
    await call.stop();
  });

  for (const [when, early] of [
    ['ended before', true],
    ['ends while it waits', false],
  ] as const)
    it(`sends the head of an empty answer that ${when} after it`, async () => {
      const body = new PassThrough();
      if (early) body.end();
      const call = await waiting(body);
      if (!early) {
        await call.received;
        body.end();
      }
      await call.asked;
      await rest();
      assert.equal(call.arrived(), '');
      call.mark.resolve(true);
      assert.deepEqual(await call.relayed, { kind: 'finished' });
      await call.ended;
      assert.match(call.arrived(), /^HTTP\/1.1 200/);
      await call.stop();
    });

  it('holds the last chunk back until the end is there: a caller that leaves before has less than the whole', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.write('first,');
    await call.asked;
    call.mark.resolve(true);
    body.write('last');
    while (!call.arrived().includes('first,')) await once(call.socket, 'data');
    assert.equal(call.arrived().includes('last'), false);
    call.socket.destroy();
    await call.left;
    body.end();
    assert.deepEqual(await call.relayed, { kind: 'client_gone', sent: { begun: true, bytes: 6, of: 10 } });
    await call.stop();
  });

  it('holds the last chunk back until the caller has read all before it', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    call.socket.pause();
    const large = 32 * 1_048_576;
    body.write(Buffer.alloc(large, 'a'));
    body.end('last');
    await call.asked;
    call.mark.resolve(true);
    while (!body.isPaused()) await rest();
    await rest();
    call.socket.destroy();
    assert.deepEqual(await call.relayed, { kind: 'client_gone', sent: { begun: true, bytes: large, of: large + 4 } });
    await call.stop();
  });

  it('reads on when the caller leaves while it waits, and sends nothing', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.write('first,');
    await call.asked;
    call.socket.destroy();
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'client_gone', sent: { begun: false, bytes: 0, of: 10 } });
    assert.equal(Buffer.concat(call.read).toString(), 'first,last');
    call.mark.resolve(true);
    await call.stop();
  });
});

describe('the relay of an answer that is there as a whole', () => {
  const ANSWER = { status: 200, headers: { 'content-type': 'text/plain', etag: '"1"' } };

  /** Answers each request of one connection with the next of these bodies, in one write each. */
  async function answering(wholes: readonly Uint8Array[], options: RelayOptions = {}, status = 200) {
    const ends: Promise<Relayed>[] = [];
    const server = http.createServer((_request, response) => {
      const answer = { ...ANSWER, status, whole: wholes[ends.length], body: new PassThrough() };
      ends.push(httpResponseWriter(response as unknown as Response, 'r').relay(answer, options));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const stop = async (): Promise<void> => {
      socket.destroy();
      server.close();
      await once(server, 'close');
    };
    return { server, socket, ends, stop };
  }
  /** What comes in answer to `requests` requests on one connection, the last of which closes it. */
  async function arriving(socket: ReturnType<typeof connect>, requests: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
    const closed = once(socket, 'close');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(requests - 1));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await closed;
    return Buffer.concat(chunks);
  }

  for (const [rule, whole] of [
    ['text', Buffer.from('größe')],
    ['every byte there is', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['64 KiB', Buffer.alloc(65_536, 0xe9)],
    ['nothing', Buffer.alloc(0)],
  ] as const)
    it(`sends ${rule} byte for byte, with its length`, async () => {
      const { socket, ends, stop } = await answering([whole]);
      const arrived = await arriving(socket, 1);
      const [head = ''] = arrived.toString('latin1').split('\r\n\r\n');
      assert.match(head, /etag: "1"/);
      assert.match(head, new RegExp(`content-length: ${whole.byteLength}\\b`, 'i'));
      assert.deepEqual(arrived.subarray(head.length + 4), whole);
      assert.deepEqual(await ends[0], { kind: 'finished' });
      await stop();
    });
  it('sends no body and no length with 204', async () => {
    const { socket, stop } = await answering([Buffer.alloc(0)], {}, 204);
    assert.doesNotMatch(String(await arriving(socket, 1)), /content-length|transfer-encoding/i);
    await stop();
  });
  it('sends nothing before `sending` resolves', async () => {
    const mark = Promise.withResolvers<boolean>();
    const asked = Promise.withResolvers<void>();
    const sending = (): Promise<boolean> => {
      asked.resolve();
      return mark.promise;
    };
    const { socket, ends, stop } = await answering([Buffer.from('hello')], { sending });
    const arrived = arriving(socket, 1);
    await asked.promise;
    await rest();
    assert.equal(socket.bytesRead, 0);
    mark.resolve(true);
    assert.match(String(await arrived), /hello$/);
    assert.deepEqual(await ends[0], { kind: 'finished' });
    await stop();
  });
  it('knows that the caller left while `sending` was under way', async () => {
    const mark = Promise.withResolvers<boolean>();
    const asked = Promise.withResolvers<void>();
    const call = await answering([Buffer.from('hello')], {
      sending: () => {
        asked.resolve();
        return mark.promise;
      },
    });
    call.server.prependOnceListener('request', (_, response: http.ServerResponse) =>
      response.once('close', () => mark.resolve(true)),
    );
    call.socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await asked.promise;
    call.socket.destroy();
    assert.deepEqual(await call.ends[0], { kind: 'client_gone', sent: { begun: false, bytes: 0, of: 0 } });
    await call.stop();
  });
  it('knows that nothing went out on a connection that its caller has ended', async () => {
    const ended = Promise.withResolvers<Relayed>();
    const server = http.createServer((request, response) => {
      // Behind the listener of the server itself, which ends its side.
      request.socket.once('end', () => {
        const answer = { ...ANSWER, whole: Buffer.from('hello'), body: new PassThrough() };
        httpResponseWriter(response as unknown as Response, 'r')
          .relay(answer, {})
          .then(ended.resolve, ended.reject);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    connect((server.address() as AddressInfo).port, '127.0.0.1').end('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal((await ended.promise).kind, 'client_gone');
    server.close();
    await once(server, 'close');
  });
  it('is finished behind another answer on its connection only when that one has gone out', async () => {
    const first = new PassThrough();
    const { server, socket, ends, stop } = await answering([Buffer.from('first'), Buffer.from('second')]);
    const [serve] = server.listeners('request');
    server.removeAllListeners('request');
    let begun = 0;
    const second = Promise.withResolvers<void>();
    server.on('request', (request, response: http.ServerResponse) => {
      begun += 1;
      if (begun === 1) first.pipe(response);
      else {
        serve?.call(server, request, response);
        second.resolve();
      }
    });
    const arrived = arriving(socket, 2);
    await second.promise;
    let finished = false;
    void ends[0]?.then(() => {
      finished = true;
    });
    await rest();
    assert.equal(finished, false, 'the answer before it is not complete');
    first.end('slow');
    assert.deepEqual(await ends[0], { kind: 'finished' });
    assert.match(String(await arrived), /slow.*first$/s);
    await stop();
  });
});

const ROOM = USUAL_ROOM.plain;
const payment: PaymentResponse = {
  ...{ success: true, transaction: `0x${'ab'.repeat(32)}`, network: 'eip155:84532', status: 'settled' },
  ...{ provider: 'x402', amount: '0.01', currency: 'USDC', payer: `0x${'1'.repeat(40)}` },
  ...{ receiptId: 'receipt_1', requestId: 'req_1' },
  extensions: { 'offer-receipt': { info: { receipt: 's'.repeat(700) }, schema: {} } },
};

/** The members of PAYMENT-RESPONSE and the merchant's fields of an answer with this link. */
function answered(link: number, etag = 10) {
  const merchant = { 'content-type': 'application/json', link: 'l'.repeat(link), etag: 'e'.repeat(etag) };
  const { payment: value = '', merchant: kept, leftOut } = fittingHead(ROOM, merchant, payment);
  assert.ok(fieldsBytes(kept) + fieldBytes('payment-response', value) <= ROOM);
  const document = JSON.parse(Buffer.from(decodeHeader(value) ?? []).toString());
  return { members: Object.keys(document), kept: Object.keys(kept).sort(), leftOut };
}

const ALL = ['content-type', 'etag', 'link'];

describe('the head of a paid answer', () => {
  it('is whole where there is room', () => {
    const { members, kept, leftOut } = answered(100);
    assert.ok(members.includes('extensions'));
    assert.deepEqual([kept, leftOut], [ALL, []]);
  });

  it('has no signed receipt where the merchant needs the room, and then what a reader needs alone', () => {
    const unsigned = answered(2_500);
    assert.ok(unsigned.members.includes('amount') && !unsigned.members.includes('extensions'));
    const needed = answered(2_900);
    assert.deepEqual(needed.members, ['success', 'transaction', 'network', 'payer', 'receiptId']);
    for (const { kept, leftOut } of [unsigned, needed]) assert.deepEqual([kept, leftOut], [ALL, []]);
  });

  it('loses the longest field of the merchant, and names it', () => {
    const { members, kept, leftOut } = answered(3_400);
    assert.ok(members.includes('extensions'), 'there is room again');
    assert.deepEqual([kept, leftOut], [['content-type', 'etag'], ['link']]);
    assert.deepEqual(answered(3_400, 3_300).leftOut, ['link', 'etag']);
  });

  it('is within its room without a payment too', () => {
    const { merchant, leftOut } = fittingHead(ROOM, { link: 'l'.repeat(4_000), etag: 'e' }, undefined);
    assert.deepEqual([merchant, leftOut], [{ etag: 'e' }, ['link']]);
  });
});
