import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import type { ConfigDocument } from '../../src/config/document/document.ts';
import { changesBetween, readSources, watchDirectories } from '../../src/config/reload.ts';
import { validateDocument } from '../../src/config/validate.ts';
import { ProblemList } from '../../src/problems/problem.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { mountVolume } from '../support/mounted-volume.ts';

const BASE = `
version: 1
merchant: { id: shop, name: Shop, publicBaseUrl: https://shop.example }
backend: { baseUrl: http://127.0.0.1:3000 }
storage: { redis: { url: "redis://:first@redis.example:6379/1" } }
payments:
  x402:
    payTo: "0x1"
    facilitator: { mode: remote, url: https://one.example, fallbacks: [{ url: https://two.example, auth: { type: bearer, token: a } }] }
resources:
  report: { name: Report, backend: { method: GET, path: /report }, pricing: { type: fixed, amount: "1", currency: USDC } }
`;
const read = (text: string): ConfigDocument => {
  const document: unknown = parse(text);
  // Puts the defaults in.
  validateDocument(document, new ProblemList());
  return document as ConfigDocument;
};
const changed = (from: string | RegExp, to: string) => changesBetween(read(BASE), read(BASE.replace(from, to)));

describe('what changed between two documents', () => {
  it('is nothing between equal ones, and a default that is written out is no change', () => {
    assert.deepEqual(changed('x', 'x'), { changed: [], restart: [] });
    assert.deepEqual(changed('backend:', 'server: { port: 8402 }\nbackend:'), { changed: [], restart: [] });
  });

  it('is named by path, down to the value, without the value', () => {
    assert.deepEqual(changed('amount: "1"', 'amount: "2"'), {
      changed: ['resources.report.pricing.amount'],
      restart: [],
    });
  });

  it('is an added or removed resource as well', () => {
    const more = changed('  report:', '  other: { name: Other }\n  report:');
    assert.deepEqual(more, { changed: ['resources.other'], restart: [] });
  });

  for (const [from, to, path] of [
    ['id: shop', 'id: other', 'merchant.id'],
    ['"0x1"', '"0x2"', 'payments.x402.payTo'],
    ['127.0.0.1:3000', '127.0.0.1:3001', 'backend.baseUrl'],
    ['redis.example', 'other.example', 'storage.redis.url'],
    ['6379/1', '6379/2', 'storage.redis.url'],
    ['https://two.example', 'https://three.example', 'payments.x402.facilitator.fallbacks'],
    ['backend:', 'server: { port: 8403 }\nbackend:', 'server.port'],
  ] as const)
    it(`${path} needs a restart`, () => {
      assert.deepEqual(changed(from, to), { changed: [path], restart: [path] });
    });

  for (const [from, to, path] of [
    [':first@', ':second@', 'storage.redis.url'],
    ['token: a', 'token: b', 'payments.x402.facilitator.fallbacks'],
  ] as const)
    it(`the login in ${path} does not`, () => {
      assert.deepEqual(changed(from, to), { changed: [path], restart: [] });
    });

  for (const [from, to, path] of [
    ['payments:', 'payments:\n  blockedPayers: "0x1"', 'payments.blockedPayers'],
    ['127.0.0.1:3000', '127.0.0.1:3000, paymentContext: true', 'backend.paymentContext'],
  ] as const)
    it(`${path} is taken over`, () => {
      assert.deepEqual(changed(from, to), { changed: [path], restart: [] });
    });
});

describe('what changed between two lists of entries', () => {
  const entry = (network: string, more = '') =>
    `{ network: ${network}, asset: "0x1", payTo: "0x1", facilitator: { mode: remote, url: https://one.example, fallbacks: [{ url: https://two.example, auth: { type: bearer, token: a } }] }${more} }`;
  const [BASE_NET, POLYGON] = [entry('base'), entry('polygon')];
  const between = (before: string, after: string) => {
    const [one, other] = [before, after].map((x402) => read(`payments: { x402: ${x402} }`));
    return changesBetween(one ?? assert.fail(), other ?? assert.fail());
  };
  const LIST = `[${BASE_NET}, ${POLYGON}]`;

  for (const [rule, to, path, takenOver = false] of [
    ['the time to pay', `[${BASE_NET}, ${entry('polygon', ', maxTimeoutSeconds: 60')}]`, '[1].maxTimeoutSeconds', true],
    ['an entry that is not offered', `[${entry('base', ', offered: false')}, ${POLYGON}]`, '[0].offered', true],
    ['a login', `[${BASE_NET}, ${POLYGON.replace('token: a', 'token: b')}]`, '[1].facilitator.fallbacks', true],
    ['a payee', `[${BASE_NET}, ${POLYGON.replace('payTo: "0x1"', 'payTo: "0x2"')}]`, '[1].payTo'],
    ['an entry more', `[${BASE_NET}, ${POLYGON}, ${entry('celo')}]`, ''],
    ['an entry less', `[${BASE_NET}]`, ''],
    ['another order', `[${POLYGON}, ${BASE_NET}]`, ''],
    ['another token', `[${BASE_NET}, ${POLYGON.replace('asset: "0x1"', 'asset: "0x2"')}]`, ''],
    ['an object of another network', entry('celo'), ''],
  ] as const)
    it(`${takenOver ? 'is taken over' : 'needs a restart'}: ${rule}`, () => {
      const changed = [`payments.x402${path}`];
      assert.deepEqual(between(LIST, to), { changed, restart: takenOver ? [] : changed });
    });

  it('is nothing between an object and a list of it', () => {
    assert.deepEqual(between(BASE_NET, `[${BASE_NET}]`), { changed: [], restart: [] });
    const changed = ['payments.x402.maxTimeoutSeconds'];
    assert.deepEqual(between(`[${BASE_NET}]`, entry('base', ', maxTimeoutSeconds: 60')), { changed, restart: [] });
  });
});

/** Longer than any test: what is seen was seen by an event. */
const NEVER_MS = 3_600_000;

/** Looks at the sources, and resolves `changed()` with each digest that is another one. */
function follow(path: string, pollMs: number) {
  let seen = readSources({ path, env: {} }).digest;
  let notify = Promise.withResolvers<void>();
  const watch = watchDirectories(() => {
    const { digest } = readSources({ path, env: {} });
    if (digest === seen) return;
    seen = digest;
    notify.resolve();
    notify = Promise.withResolvers();
  }, pollMs);
  watch.follow(readSources({ path, env: {} }).files);
  return { watch, changed: () => notify.promise };
}

describe('the watch over mounted files', { timeout: 30_000 }, () => {
  it('sees a ConfigMap that is replaced, twice in a row', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'acg-watch-');
    const volume = await mountVolume(join(directory, 'mount'), { 'gateway.yaml': 'one' });
    const { watch, changed } = follow(join(volume.path, 'gateway.yaml'), NEVER_MS);
    ends.defer(() => watch.close());
    for (const text of ['two', 'three', 'four']) {
      const seen = changed();
      await volume.publish({ 'gateway.yaml': text });
      await seen;
    }
  });

  it('sees a change without an event by looking now and then', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'acg-watch-');
    const path = join(directory, 'gateway.yaml');
    await writeFile(path, 'one');
    const { watch, changed } = follow(path, 20);
    ends.defer(() => watch.close());
    watch.follow([]);
    const seen = changed();
    await writeFile(path, 'two');
    await seen;
  });

  it('goes on with a directory that is not there', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'acg-watch-');
    const watch = watchDirectories(() => undefined, NEVER_MS);
    ends.defer(() => watch.close());
    watch.follow([join(directory, 'absent', 'gateway.yaml')]);
    watch.follow([join(directory, 'gateway.yaml')]);
  });
});

describe('the sources of a configuration', () => {
  it('are the file, and the secrets that placeholders and variables name', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'acg-sources-');
    const path = join(directory, 'gateway.yaml');
    await writeFile(path, `a: \${file:/run/key}\nb: "\${TOKEN}"\nc: "\${OTHER:-x}"`);
    const env = { TOKEN_FILE: '/run/token', OTHER_FILE: '/run/other', ADMIN_TOKEN_FILE: '/run/admin', X_FILE: '/no' };
    const { files } = readSources({ path, env });
    assert.deepEqual([...files].sort(), [path, '/run/admin', '/run/key', '/run/other', '/run/token'].sort());
  });

  it('have another digest for another content of any of them, and for one that is gone', async () => {
    await using ends = new AsyncDisposableStack();
    const directory = await temporaryDirectory(ends, 'acg-sources-');
    const [path, secret] = [join(directory, 'gateway.yaml'), join(directory, 'secret')];
    const digest = (): string => readSources({ path, env: { ADMIN_TOKEN_FILE: secret } }).digest;
    const digests = [digest()];
    await writeFile(path, 'a: 1');
    digests.push(digest());
    await writeFile(secret, '');
    digests.push(digest());
    await writeFile(secret, 'one');
    digests.push(digest());
    assert.equal(new Set(digests).size, 4);
    assert.equal(digest(), digests[3]);
  });
});
