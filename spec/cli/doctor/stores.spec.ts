import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { TRIED_RIGHTS } from '../../../src/cli/doctor/redis.ts';
import { CLUSTER_RIGHTS, leastRights, OPTIONAL_RIGHTS } from '../../store/redis-bed.ts';
import { prepareGateway } from '../../support/gateway-process.ts';
import { startReplicatedRedis } from '../../support/redis-replicas.ts';
import { type CheckedWorld, healthyStatuses, openCheckedWorld } from './checked-world.ts';

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
let healthy: Awaited<ReturnType<CheckedWorld['examined']>>['statuses'];
before(async () => {
  world = await openCheckedWorld(ends);
  healthy = await healthyStatuses(world);
});
after(() => ends.disposeAsync());

const MERCHANT = 'market-shop';
const BEHIND_REDIS = ['redis rights', 'redis write', 'redis eviction', 'redis append-only file', 'redis fsync'];

/** The healthy statuses with these in their places. */
function but(changed: Readonly<Record<string, string>>) {
  return { ...healthy, ...changed };
}

function skipping(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, 'SKIP']));
}

describe('the checks of Redis', () => {
  for (const { setting, wrong, right, check, status, also, says } of [
    {
      ...{ setting: 'maxmemory-policy', wrong: 'allkeys-lru', right: 'noeviction', check: 'redis eviction' },
      ...{ status: 'FAIL', also: [], says: /maxmemory-policy allkeys-lru may evict .*; CONFIG SET maxmemory-policy/ },
    },
    {
      ...{ setting: 'appendonly', wrong: 'no', right: 'yes', check: 'redis append-only file' },
      ...{ status: 'WARN', also: ['redis fsync'], says: /appendonly is off: .*; CONFIG SET appendonly yes/ },
    },
    {
      ...{ setting: 'appendfsync', wrong: 'everysec', right: 'always', check: 'redis fsync' },
      ...{ status: 'WARN', also: [], says: /appendfsync everysec: .*; CONFIG SET appendfsync always/ },
    },
  ])
    it(`${setting} ${wrong} shows in ${check} alone`, async () => {
      await world.admin.config('SET', setting, wrong);
      try {
        const { statuses, text } = await world.examined();
        assert.deepEqual(statuses, but({ ...skipping(also), [check]: status }));
        assert.match(text, says);
      } finally {
        await world.admin.config('SET', setting, right);
      }
    });

  it('a memory that is nearly full is a warning', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await world.admin.info('memory'))?.[1]);
    await world.admin.config('SET', 'maxmemory', Math.ceil(used * 1.1));
    try {
      const { statuses, text } = await world.examined();
      assert.deepEqual(statuses, but({ 'redis eviction': 'WARN' }));
      assert.match(text, /memory is nearly full/);
    } finally {
      await world.admin.config('SET', 'maxmemory', 0);
    }
  });

  it('a server that is away skips what stands behind it', async () => {
    const { statuses, text } = await world.examined({ storage: { redis: { url: 'redis://127.0.0.1:1' } } });
    assert.deepEqual(statuses, but({ redis: 'FAIL', ...skipping(BEHIND_REDIS) }));
    assert.match(text, /^FAIL redis: 127\.0\.0\.1:1: .*ECONNREFUSED.*; start it, or correct its address/m);
  });

  it('a wrong password is told from a server that is away, and not shown', async () => {
    await world.admin.call('ACL', 'SETUSER', 'known', 'on', '>right-password', '~*', '+@all');
    const password = 'a-wrong-password';
    const { statuses, text } = await world.examined({ storage: { redis: { username: 'known', password } } });
    assert.deepEqual(statuses, but({ redis: 'FAIL', ...skipping(BEHIND_REDIS) }));
    assert.match(text, /^FAIL redis: .*WRONGPASS.*; correct username and password/m);
    assert.ok(!text.includes(password));
  });
});

describe('the rights of the user of Redis', () => {
  /** What is found with a user that has these rights alone. */
  async function withRights(name: string, rights: readonly string[]) {
    await world.admin.call('ACL', 'SETUSER', name, 'reset', 'on', '>of-the-test', ...rights);
    return world.examined({ storage: { redis: { username: name, password: 'of-the-test' } } });
  }

  it('are tried as docs/redis.md lists them', () => {
    const listed = leastRights(MERCHANT).filter((right) => right.startsWith('+'));
    assert.deepEqual(
      listed.filter((right) => !TRIED_RIGHTS.includes(right)),
      ['+auth', '+quit'],
    );
    assert.deepEqual(
      TRIED_RIGHTS.filter((right) => !listed.includes(right)),
      [],
    );
    assert.ok(CLUSTER_RIGHTS.every((right) => !TRIED_RIGHTS.includes(right)));
  });

  it('suffice as they stand there; without CONFIG GET the fsync cannot be read', async () => {
    const least = await withRights('least', leastRights(MERCHANT));
    assert.deepEqual(least.statuses, but({ 'redis fsync': 'SKIP' }));
    assert.match(least.text, /^SKIP redis fsync: appendfsync cannot be read.*\+config\|get lets it be read/m);
    const more = await withRights('more', [...leastRights(MERCHANT), ...OPTIONAL_RIGHTS]);
    assert.deepEqual(more.statuses, healthy);
    assert.deepEqual(await world.admin.keys('*trial*'), []);
  });

  it('one that is missing is named with the command that gives it, whichever it is', async () => {
    // Without these there is no connection, or no ready one.
    const needed = new Set(['+hello', '+ping', '+info', '+client|setname']);
    for (const right of TRIED_RIGHTS.filter((name) => !needed.has(name))) {
      const rights = [...leastRights(MERCHANT), ...OPTIONAL_RIGHTS].filter((name) => name !== right);
      const { statuses, text } = await withRights('lacking', rights);
      // GET also leads the questions about the server to the node that has our keys.
      const blind = right === '+get' ? skipping(['redis eviction', 'redis append-only file', 'redis fsync']) : {};
      assert.deepEqual(statuses, but({ 'redis rights': 'FAIL', 'redis write': 'SKIP', ...blind }), right);
      assert.ok(text.includes(`the user lacks ${right}; ACL SETUSER lacking ${right} (`), text);
    }
    await world.admin.call('ACL', 'DELUSER', 'lacking');
  });

  it('keys of another merchant are no keys of this one', async () => {
    const { statuses, text } = await withRights('other', leastRights('another-shop'));
    const blind = skipping(['redis eviction', 'redis append-only file', 'redis fsync']);
    assert.deepEqual(statuses, but({ 'redis rights': 'FAIL', 'redis write': 'SKIP', ...blind }));
    assert.ok(text.includes(`the user lacks ~{acg:${MERCHANT}}:*`), text);
  });
});

describe('the replicas of Redis', () => {
  it('that are missing are a warning; writes that none has are a failure', async (t) => {
    const group = await startReplicatedRedis(2);
    t.after(() => group.stop());
    await group.primary.admin.config('SET', 'appendfsync', 'always');
    const redis = { url: `redis://127.0.0.1:${group.primary.port}`, replicas: 2 };
    const good = await world.examined({ storage: { redis } });
    assert.deepEqual(good.statuses, but({ 'redis replicas': 'PASS' }));
    assert.match(good.text, /^PASS redis replicas: a write is on [12] of 2 replicas at once/m);
    const more = await world.examined({ storage: { redis: { ...redis, replicas: 3 } } });
    assert.deepEqual(more.statuses, but({ 'redis replicas': 'WARN' }));
    assert.match(more.text, /^WARN redis replicas: 2 of 3 replicas are online; /m);
    // They still count as online, and get nothing any more.
    for (const { server } of group.replicas) process.kill(server.pid, 'SIGSTOP');
    try {
      const stuck = await world.examined({ storage: { redis } });
      assert.deepEqual(stuck.statuses, but({ 'redis replicas': 'FAIL' }));
      assert.match(stuck.text, /^FAIL redis replicas: no replica has a write within/m);
    } finally {
      for (const { server } of group.replicas) process.kill(server.pid, 'SIGCONT');
    }
  });
});

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
