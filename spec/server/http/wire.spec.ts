import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { closeOf, dial, envelopeOf, exchange, invoke, received } from './raw.ts';

describe('a request to the gateway', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('with Expect: 100-continue may send its body, which reaches the backend without its headers', async () => {
    testbed.backend.forget();
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    const fields = ['Expect: 100-continue', 'Content-Length: 7', 'Authorization: Bearer mine', 'Connection: close'];
    socket.write(invoke('free_echo', fields));
    await once(socket, 'data');
    socket.write('{"a":1}');
    await closeOf(socket);
    const answer = text();
    assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.ok(answer.endsWith('{"a":1}'));
    const [request] = testbed.backend.requests;
    assert.equal(request?.body.toString(), '{"a":1}');
    assert.ok(!request?.rawHeaders.some((value) => /expect|authorization|mine/i.test(value)));
  });

  it('with Expect: 100-continue gets no 100 for what is refused', async () => {
    const answer = await exchange(testbed.gateway.url, [
      invoke('free_echo', ['Expect: 100-continue', 'Content-Length: 9999999']),
    ]);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.ok(!answer.includes('100 Continue'));
  });

  it('with an unknown expectation is served', async () => {
    const answer = await exchange(testbed.gateway.url, [
      invoke('cities', ['Expect: 200-maybe', 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  it('with Upgrade: h2c is served as a plain request, and tunnels nothing', async () => {
    testbed.backend.forget();
    const lines = [
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
      'Content-Length: 2',
    ];
    const answer = await exchange(testbed.gateway.url, [invoke('free_echo', lines), '{}']);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    const raw = testbed.backend.requests[0]?.rawHeaders.join('|') ?? '';
    assert.ok(!/upgrade|http2-settings/i.test(raw));
  });

  it('has headers nominated by Connection, which reach no backend and weaken none of the gateway', async () => {
    testbed.backend.forget();
    const lines = [
      'Connection: close, X-Request-Id, Content-Type, X-Secret',
      'X-Secret: 1',
      'X-Request-Id: nominated',
      'Content-Length: 2',
    ];
    const answer = await exchange(testbed.gateway.url, [invoke('free_echo', lines), '{}']);
    assert.match(answer, /x-request-id: nominated/i);
    const names = (testbed.backend.requests[0]?.rawHeaders ?? []).map((value) => value.toLowerCase());
    assert.ok(names.includes('x-request-id') && !names.includes('x-secret'));
  });

  it('may have two proofs of 8 KiB in its head, but no 33 KiB', async () => {
    const proofs = [`Payment-Signature: ${'A'.repeat(8_192)}`, `Agent-Authorization: ${'B'.repeat(8_192)}`];
    const fits = await exchange(testbed.gateway.url, [
      invoke('cities', [...proofs, 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(fits, /^HTTP\/1\.1 200 /);
    const over = await exchange(testbed.gateway.url, [
      invoke('cities', [`X-Large: ${'C'.repeat(33_000)}`, 'Content-Length: 2']),
      '{}',
    ]);
    assert.match(over, /^HTTP\/1\.1 400 /);
    assert.equal(envelopeOf(over)['reason'], 'headers_too_large');
  });

  it('may follow another on one connection', async () => {
    const one = invoke('cities', ['Content-Length: 2']);
    const last = invoke('cities', ['Content-Length: 2', 'Connection: close']);
    const answer = await exchange(testbed.gateway.url, [`${one}{}`, `${last}{}`]);
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 2);
  });
});
