import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { idPrefixes } from '../../../src/server/http/access-record.ts';
import { belowMount, rawPath, readJsonBody } from '../../../src/server/http/request.ts';

/** Sends one request, and reads its body once all of it has come. */
async function readLate(bytes: string): Promise<{ readonly read: unknown; readonly listeners: number }> {
  const { promise, resolve } = Promise.withResolvers<{ read: unknown; listeners: number }>();
  const answer: RequestListener = async (req, res) => {
    await complete(req);
    const reading = readJsonBody(req, res).catch((error: unknown) => error);
    const listeners = req.listenerCount('data');
    const read = await reading;
    res.end();
    resolve({ read, listeners });
  };
  await using server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(bytes);
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

/** Resolves when the last byte of a request was parsed; nothing of it is read. */
async function complete(req: IncomingMessage): Promise<void> {
  while (!req.complete) await new Promise((resolve) => setImmediate(resolve));
}

const HEAD = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';

describe('a body of which all has come before it is read', () => {
  it('is read at once, and nothing listens for it', async () => {
    const { read, listeners } = await readLate(`${HEAD}content-length: 9\r\n\r\n{"a":[1]}`);
    assert.deepEqual(read, { bytes: Buffer.from('{"a":[1]}'), value: { a: [1] }, absent: false });
    assert.equal(listeners, 0);
  });

  it('is put together from its chunks', async () => {
    const { read } = await readLate(`${HEAD}transfer-encoding: chunked\r\n\r\n4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n`);
    assert.deepEqual(read, { bytes: Buffer.from('{"a":1}'), value: { a: 1 }, absent: false });
  });

  it('is {} when it is empty', async () => {
    const { read } = await readLate(`${HEAD}content-length: 0\r\n\r\n`);
    assert.deepEqual(read, { bytes: Buffer.from('{}'), value: {}, absent: true });
  });

  it('is refused as any other: bytes without a type, and trailers', async () => {
    for (const [code, bytes] of [
      [
        'UNSUPPORTED_MEDIA_TYPE',
        'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
      ],
      ['INPUT_INVALID', `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\na: b\r\n\r\n`],
    ] as const) {
      const { read } = await readLate(bytes);
      assert.ok(read instanceof GatewayError && read.code === code, `${code}: ${String(read)}`);
    }
  });
});

describe('the path of a request target', () => {
  const rows = [
    ['/a/b?c=/d', '/a/b'],
    ['/a/%2e%2e/b', '/a/%2e%2e/b'],
    ['/a/../b', '/a/../b'],
    ['http://shop.example/a?b', '/a'],
    ['HTTP://user:pass@shop.example:80/a', '/a'],
    ['http://shop.example', '/'],
    ['http://shop.example?a', '/'],
    ['other://[shop', '/'],
    ['*', '*'],
    ['*a', '/*a'],
  ] as const;
  for (const [target, path] of rows) it(`of ${target} is ${path}`, () => assert.equal(rawPath(target), path));

  it('is below a mount when a slash follows it, or is the mount', () => {
    assert.equal(belowMount('/acp', '/acp'), '');
    assert.equal(belowMount('/acp', '/acp/'), '/');
    assert.equal(belowMount('/acp', '/acp/x/y'), '/x/y');
    for (const path of ['/acpx', '/ACP/x', '/', '/x/acp', '/acp%2Fx'])
      assert.equal(belowMount('/acp', path), undefined);
  });
});

describe('the beginnings of request ids', () => {
  it('are the names of the channels: of mounts, and of everything below the one that has routes', () => {
    const prefixes = idPrefixes({
      http: { enabled: true },
      mcp: { enabled: true, mountPath: '/mcp' },
      a2a: { enabled: false, mountPath: '/a2a' },
      acp: { enabled: true, mountPath: '/acp' },
    });
    const rows = {
      '/mcp': 'mcp',
      '/mcp/': 'mcp',
      '/mcp/x': undefined,
      '/a2a': undefined,
      '/acp': 'acp',
      '/acp/x/y': 'acp',
      '/': undefined,
    };
    for (const [path, prefix] of Object.entries(rows)) assert.equal(prefixes.get(path), prefix, path);
  });
  it('are not those of a channel that is not enabled', () =>
    assert.equal(idPrefixes({ acp: { enabled: false, mountPath: '/acp' } }).get('/acp/x'), undefined));
});
