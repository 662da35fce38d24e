import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readSources } from '../../src/config/sources.ts';
import { watchDirectories } from '../../src/config/watch.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { mountVolume } from '../support/mounted-volume.ts';

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
