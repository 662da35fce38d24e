import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { closeOf, dial, envelopeOf, exchange, head, invoke, pourUntilAnswered, received } from './raw.ts';

describe('bytes that are wrong', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('413 goes out with the first byte too many of an endless upload, which is not drained', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.write(invoke('free_echo', ['Transfer-Encoding: chunked']));
    const { written, answer } = await pourUntilAnswered(socket);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /connection: close/i);
    assert.ok(written < 1024 * 1024, `${written} bytes were taken`);
    await closeOf(socket);
  });

  it('a refused upload ends its connection, and a later call on it is not served', async () => {
    const noType = head(['POST /api/resources/cities/invoke HTTP/1.1', 'Host: shop', 'Content-Length: 4']);
    const next = invoke('free_slow', ['Content-Length: 27', 'Connection: close']);
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    socket.write(`${noType}{}`);
    await once(socket, 'data');
    assert.match(text(), /^HTTP\/1\.1 415 [\s\S]*connection: close/i);
    socket.write(`{}${next}{"chunks":15,"everyMs":100}`);
    await closeOf(socket);
    assert.equal(text().match(/HTTP\/1\.1/g)?.length, 1, 'the second call was never begun');
  });

  it('an upload of an unknown type is not drained', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.write(
      head([
        'POST /api/resources/cities/invoke HTTP/1.1',
        'Host: shop',
        'Content-Type: text/plain',
        'Transfer-Encoding: chunked',
      ]),
    );
    const { answer } = await pourUntilAnswered(socket);
    assert.match(answer, /^HTTP\/1\.1 415 [\s\S]*connection: close/i);
    await closeOf(socket);
  });

  it('garbage behind a running answer does not change it, and is refused behind it', async () => {
    for (const id of ['free_slow', 'slow']) {
      const input = { chunks: 6, everyMs: 40 };
      const proof = id === 'slow' ? [`Payment-Signature: ${await testbed.proof('slow', input)}`] : [];
      const body = JSON.stringify(input);
      const socket = await dial(testbed.gateway.url);
      const text = received(socket);
      socket.write(`${invoke(id, [...proof, `Content-Length: ${body.length}`])}${body}`);
      while (!text().includes('000000001')) await once(socket, 'data');
      socket.write('GARBAGE\r\n\r\n\0\0');
      await once(socket, 'close');
      assert.match(text(), /^HTTP\/1\.1 200 /);
      assert.match(text(), /000000005\n\r\n0\r\n\r\nHTTP\/1\.1 400 [\s\S]*"malformed_request"/);
      assert.equal(text().match(/HTTP\/1\.1/g)?.length, 2);
    }
  });

  it('garbage behind two pipelined calls: both are answered', async () => {
    const input = '{"chunks":6,"everyMs":40}';
    const call = (id: string): string => `${invoke(id, [`Content-Length: ${input.length}`])}${input}`;
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    socket.write(`${call('free_slow')}${call('free_slow')}`);
    while (!text().includes('000000001')) await once(socket, 'data');
    socket.write('GARBAGE\r\n\r\n');
    await once(socket, 'close');
    assert.equal(text().match(/HTTP\/1\.1 200 /g)?.length, 2);
    assert.equal(text().match(/000000005/g)?.length, 2);
  });

  it('a refused upload is answered also to a client that reads late', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.pause();
    socket.write(invoke('free_echo', ['Content-Length: 4000000']));
    socket.write(Buffer.alloc(4_000_000, 0x20));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const text = received(socket);
    socket.resume();
    await closeOf(socket);
    assert.match(text(), /^HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/);
  });

  it('a body that breaks off in the middle is answered under the id of its request', async () => {
    const request = invoke('cities', ['Transfer-Encoding: chunked', 'X-Request-Id: broken-body']);
    const answer = await exchange(testbed.gateway.url, [`${request}ZZ\r\n`]);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: broken-body/i);
    assert.match(answer, /"requestId":"broken-body"/);
  });

  it('CONNECT gets the envelope', async () => {
    const answer = await exchange(testbed.gateway.url, [head(['CONNECT a:443 HTTP/1.1', 'Host: a:443'])]);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_/i);
    assert.equal(envelopeOf(answer)['code'], 'INPUT_INVALID');
  });

  it('a CONNECT whose caller resets the connection before the answer does no harm', async () => {
    for (let times = 0; times < 20; times += 1) {
      const socket = await dial(testbed.gateway.url);
      socket.write(head(['CONNECT a:443 HTTP/1.1', 'Host: a:443']));
      await new Promise((resolve) => setImmediate(resolve));
      socket.resetAndDestroy();
    }
    assert.equal((await testbed.gateway.invoke('cities')).status, 200);
  });
});
