import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { readHeaderLines, readLoopbackUrl, runBackendPreStop } from '../../src/sidecar/backend-pre-stop.ts';

/** A backend on loopback, and its hook. */
async function withBackend(answer: RequestListener, test: (url: URL) => Promise<void>): Promise<void> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await test(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/stop?now=1`));
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

describe('the preStop hook of a backend', () => {
  it('is asked with its headers but those of the connection, and any answer ends it', async () => {
    const asked: unknown[] = [];
    const answer: RequestListener = (req, res) => {
      asked.push([req.method, req.url, req.headers.host, req.headers['x-why'], req.headers.expect]);
      res.writeHead(500).end('no');
    };
    await withBackend(answer, (url) =>
      runBackendPreStop(
        { kind: 'get', url, headers: { Host: 'merchant', 'X-Why': 'end', Expect: '100-continue' } },
        5_000,
      ),
    );
    assert.deepEqual(asked, [['GET', '/stop?now=1', 'merchant', 'end', undefined]]);
  });

  it('gets no more time than the backend has to end', async () => {
    await withBackend(
      () => undefined,
      (url) => assert.rejects(runBackendPreStop({ kind: 'get', url, headers: {} }, 50), /timeout|aborted/i),
    );
    await runBackendPreStop({ kind: 'sleep', seconds: 3_600 }, 10);
  });

  it('is a URL of the pod alone', () => {
    for (const url of ['http://127.0.0.1:8080/a', 'https://localhost/', 'http://[::1]:1/'])
      assert.equal(readLoopbackUrl(url)?.href, url);
    for (const url of ['http://127.0.0.2/', 'http://merchant/', 'file:///etc/passwd', '127.0.0.1:80', ''])
      assert.equal(readLoopbackUrl(url), undefined, url);
  });

  it('has its headers in lines', () => {
    assert.deepEqual(readHeaderLines(''), {});
    assert.deepEqual(readHeaderLines('A: 1\nB:2\n'), { A: '1', B: '2' });
    for (const lines of ['A', ': 1', 'A b: 1', 'A: 1\rB: 2']) assert.equal(readHeaderLines(lines), undefined, lines);
  });
});
