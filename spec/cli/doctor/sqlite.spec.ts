import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { prepareGateway } from '../../support/gateway-process.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
before(async () => {
  world = await openCheckedWorld(ends);
});
after(() => ends.disposeAsync());

const examinedWith = (path: string) => world.examined({ storage: { redis: undefined, sqlite: { path } } });
/** What is found of the file; all else is as in every world. */
async function found(path: string) {
  const { statuses, text } = await examinedWith(path);
  const bad = Object.entries(statuses).filter(([, status]) => status === 'FAIL' || status === 'WARN');
  return { bad: Object.fromEntries(bad), file: statuses['sqlite file'], processes: statuses['sqlite processes'], text };
}

describe('the checks of a store in SQLite', () => {
  it('a file that is not there yet can be made, and is not', async () => {
    const path = join(world.folder, 'new', 'gateway.db');
    const { bad, file, processes, text } = await found(path);
    assert.deepEqual([bad, file, processes], [{}, 'PASS', 'PASS']);
    assert.match(text, /gateway\.db is made at the first start/);
    assert.equal(existsSync(join(world.folder, 'new')), false);
  });

  it('a file that is none of SQLite, and one below a file, cannot be written', async () => {
    const path = join(world.folder, 'text.db');
    await writeFile(
      path,
      'this is no database, and longer than the head of one: it has to be looked at as a whole'.repeat(9),
    );
    const garbled = await found(path);
    assert.deepEqual([garbled.bad, garbled.processes], [{ 'sqlite file': 'FAIL' }, 'SKIP']);
    assert.match(garbled.text, /storage\.sqlite\.path: .*text\.db cannot be written: file is not a database/);
    const below = await found(join(path, 'gateway.db'));
    assert.deepEqual(below.bad, { 'sqlite file': 'FAIL' });
    assert.match(below.text, /cannot be made in .*text\.db; let the user of the gateway write this folder/);
  });

  it('one gateway has its file alone; a second one on it fails, and one elsewhere warns', async () => {
    const path = join(world.folder, 'shared.db');
    const own = { ...world.parts, storage: { sqlite: { path } } };
    await using gateways = new AsyncDisposableStack();
    const start = async (parts: Parameters<typeof prepareGateway>[1]) => {
      const { start } = await prepareGateway(world.folder, parts);
      return gateways.adopt(await start(), async ({ stop }) => void (await stop()));
    };
    const first = await start(own);
    const alone = await found(path);
    assert.deepEqual([alone.bad, alone.processes], [{}, 'PASS']);
    assert.match(alone.text, new RegExp(`process ${first.pid} alone has it open`));
    const second = await start({ ...own, ports: undefined });
    const both = await found(path);
    assert.deepEqual(both.bad, { 'sqlite processes': 'FAIL' });
    assert.match(both.text, /^FAIL sqlite processes: 2 processes have .*; end all but one gateway/m);
    await first.stop();
    const other = await found(path);
    assert.deepEqual(other.bad, { 'sqlite processes': 'WARN' });
    assert.match(other.text, new RegExp(`process ${second.pid} has .* open, and no gateway answers at server\\.port`));
  });
});
