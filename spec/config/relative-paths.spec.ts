import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { changed } from './document/document.ts';

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

/** A configuration in a folder of its own that names this database. */
async function configured(path: string) {
  const folder = await temporaryDirectory(ends, 'acg-relative-');
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(changed({ storage: { sqlite: { path } } })));
  const load = (named: string = file) => loadConfig({ path: named, env: {} }).storage.engine;
  return { folder, file, load };
}

describe('the path of the database', () => {
  it('is relative to the folder of the configuration file, whatever folder that is', async () => {
    const { folder, load } = await configured('./data/gateway.db');
    assert.deepEqual(load(), { kind: 'sqlite', path: join(folder, 'data/gateway.db') });
  });

  it('is the same for a file that is named by a relative path', async () => {
    const { folder, file, load } = await configured('gateway.db');
    assert.deepEqual(load(relative(process.cwd(), file)), { kind: 'sqlite', path: join(folder, 'gateway.db') });
  });

  for (const path of ['/var/lib/gateway.db', ':memory:'])
    it(`stays ${path}`, async () => {
      const { load } = await configured(path);
      assert.deepEqual(load(), { kind: 'sqlite', path });
    });
});
