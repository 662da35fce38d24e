import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createKeyFetcher, type KeyFetcher, MAX_KEYS_BYTES } from '../../../../src/mandates/ap2/remote-keys.ts';

const DEADLINE_MS = 300;
const padded = (length: number): string => `{"keys":[]}${' '.repeat(length - 11)}`;

/** What a hostile or broken issuer answers, by path. */
const ANSWERS: Readonly<Record<string, RequestListener>> = {
  '/good': (_req, res) => res.end('{"keys":[]}'),
  '/largest': (_req, res) => res.end(padded(MAX_KEYS_BYTES)),
  '/too-large': (_req, res) => res.end(padded(MAX_KEYS_BYTES + 1)),
  '/endless': (_req, res) => {
    const more = (): void => {
      while (!res.destroyed && res.write(padded(65_536)));
    };
    res.on('drain', more);
    more();
  },
  '/silent': () => undefined,
  '/dripping': (_req, res) => {
    const drip = setInterval(() => res.write(' '), 20);
    res.on('close', () => clearInterval(drip));
  },
  '/redirect': (_req, res) => res.writeHead(302, { location: '/good' }).end(),
  '/error': (_req, res) => res.writeHead(500).end('{"keys":[]}'),
  '/garbage': (_req, res) => res.end('<html>'),
  '/duplicate': (_req, res) => res.end('{"keys":[],"keys":[]}'),
  '/prototype': (_req, res) => res.end('{"__proto__":{"keys":[]}}'),
  '/latin1': (_req, res) => res.end(Buffer.from('{"keys":"\u00fc"}', 'latin1')),
  '/headers': (_req, res) => res.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end('{"keys":[]}'),
  '/cut': (_req, res) => {
    res.writeHead(200, { 'content-length': '100' }).write('{"keys":');
    setTimeout(() => res.destroy(), 20);
  },
};

describe('fetching the keys of an issuer', () => {
  let server: Server;
  let origin: string;
  let fetcher: KeyFetcher;
  /** With a deadline that a busy machine may miss: for answers that never come. */
  let hasty: KeyFetcher;
  const asked: string[] = [];
  before(async () => {
    server = createServer((req, res) => {
      asked.push(req.url ?? '');
      ANSWERS[req.url ?? '']?.(req, res);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    fetcher = createKeyFetcher({ plainOnLoopback: true });
    hasty = createKeyFetcher({ deadlineMs: DEADLINE_MS, plainOnLoopback: true });
  });
  after(async () => {
    await Promise.all([fetcher.close(), hasty.close()]);
    server.closeAllConnections();
    server.close();
  });

  for (const path of ['/good', '/largest'])
    it(`reads ${path}`, async () => assert.deepEqual(await fetcher.fetch(origin + path), { keys: [] }));

  const refused: Readonly<Record<string, RegExp>> = {
    '/too-large': /larger than 65536 bytes/,
    '/endless': /larger than 65536 bytes/,
    '/redirect': /status 302/,
    '/error': /status 500/,
    '/garbage': /not strict JSON \(malformed_json\)/,
    '/duplicate': /not strict JSON \(duplicate_key\)/,
    '/prototype': /not strict JSON \(forbidden_key\)/,
    '/latin1': /not strict JSON \(malformed_json\)/,
    '/headers': /Headers Overflow/,
    '/cut': /other side closed|content-length/,
  };
  for (const [path, message] of Object.entries(refused))
    it(`refuses ${path}`, () => assert.rejects(fetcher.fetch(origin + path), message));

  it('follows no redirect', () => assert.equal(asked.filter((path) => path === '/good').length, 1));

  for (const path of ['/silent', '/dripping'])
    it(`gives up on ${path} at its deadline`, async () => {
      const started = performance.now();
      await assert.rejects(hasty.fetch(origin + path), /timeout|aborted/i);
      assert.ok(performance.now() - started < DEADLINE_MS * 10, 'it did not wait for the end');
    });

  it('speaks https only, unless a test asks for this machine itself', async () => {
    const strict = createKeyFetcher();
    await assert.rejects(strict.fetch(`${origin}/good`), /over https only/);
    await assert.rejects(fetcher.fetch('http://localhost:1/good'), /over https only/);
    await assert.rejects(fetcher.fetch('ftp://127.0.0.1/good'), /over https only/);
    await strict.close();
  });

  it('connects to no name that leads to a forbidden address', async () => {
    const led = createKeyFetcher({
      resolve: (_name, _options, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
    });
    await assert.rejects(led.fetch('https://keys.example/jwks.json'), /link-local, metadata/);
    await led.close();
  });
});
