import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, type ConfigProblem } from '../../src/problems/problem.ts';
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

function refusals(load: () => unknown): readonly ConfigProblem[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
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

describe('a database in the working directory, where earlier releases looked', () => {
  // The working directory of a process of specs is that of the repository.
  const EARLIER = 'package.json';

  it('is refused: an empty one would take its place', async () => {
    const { folder, load } = await configured(EARLIER);
    const [said] = refusals(load);
    assert.equal(said?.path, 'storage.sqlite.path');
    assert.equal(
      said.message,
      `is relative to the folder of the configuration file and means ${join(folder, EARLIER)}, where no database is, ` +
        `while ${join(process.cwd(), EARLIER)} in the working directory is one; move it there with its -wal file, or ` +
        'write its absolute path here',
    );
  });

  it('is not looked at once there is one beside the configuration', async () => {
    const { folder, load } = await configured(EARLIER);
    writeFileSync(join(folder, EARLIER), '');
    assert.deepEqual(load(), { kind: 'sqlite', path: join(folder, EARLIER) });
  });

  it('is none where the path is that of a folder', async () => {
    const { folder, load } = await configured('spec');
    assert.deepEqual(load(), { kind: 'sqlite', path: join(folder, 'spec') });
  });
});
