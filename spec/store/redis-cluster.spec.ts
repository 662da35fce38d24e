import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { event, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { freePorts } from '../support/ports.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { storeContract } from './contract.ts';
import { LEASE_MS, LIMITS } from './opened.ts';
import { CLUSTER_RIGHTS, leastRights } from './redis-bed.ts';

/** Three primaries that share the slots. */
interface RedisCluster {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly servers: readonly TestRedis[];
  /** A connection of the test's own to each server. */
  readonly admins: readonly Redis[];
  stop(): Promise<void>;
}

const SIZE = 3;
const SLOTS = 16_384;

/** Starts them and waits until each of them serves. */
async function startRedisCluster(): Promise<RedisCluster> {
  const ports = await freePorts(2 * SIZE);
  const members = await Promise.all(
    Array.from({ length: SIZE }, async (_, i) => {
      const [port = 0, busPort = 0] = [ports[2 * i], ports[2 * i + 1]];
      const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--cluster-node-timeout', '2000'];
      // With `everysec` a write may wait behind an fsync, and `kill -9` takes it along.
      const args = [...cluster, '--appendfsync', 'always'];
      const server = await startRedis({ port, args });
      return { server, port, busPort, admin: new Redis({ path: server.socketPath, enableReadyCheck: false }) };
    }),
  );
  const [first] = members;
  for (const [i, { admin, port, busPort }] of members.entries()) {
    await admin.call(
      'CLUSTER',
      'ADDSLOTSRANGE',
      Math.ceil((i * SLOTS) / SIZE),
      Math.ceil(((i + 1) * SLOTS) / SIZE) - 1,
    );
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    if (i > 0) await first?.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  }
  const served = async (): Promise<boolean> => {
    const states = await Promise.all(members.map(({ admin }) => admin.call('CLUSTER', 'INFO')));
    return states.every((text) => /cluster_state:ok/.test(String(text)) && /cluster_known_nodes:3/.test(String(text)));
  };
  await until(served, 'the cluster does not come up');
  return {
    nodes: ports.filter((_, i) => i % 2 === 0).map((port) => ({ host: '127.0.0.1', port })),
    servers: members.map(({ server }) => server),
    admins: members.map(({ admin }) => admin),
    async stop() {
      for (const { admin } of members) admin.disconnect();
      await Promise.all(members.map(({ server }) => server.stop()));
    },
  };
}

/** Longest a caller waits for a store that is away, milliseconds. */
const PROMPT_MS = 1_000;

let cluster: RedisCluster;
before(async () => {
  cluster = await startRedisCluster();
});
after(() => cluster.stop());

const open = (merchantId: string = randomUUID()) =>
  openRedisStore({ cluster: { nodes: cluster.nodes }, merchantId, limits: LIMITS });

// Each group is another merchant, so the groups use different nodes.
storeContract('redis cluster', open);

interface Member {
  readonly admin: Redis;
  readonly server: TestRedis;
}

describe('a cluster', () => {
  const members = (): readonly Member[] =>
    cluster.admins.map((admin, i) => ({ admin, server: cluster.servers[i] ?? assert.fail() }));

  /** The node that has keys of the merchant; there must be one. */
  async function ownerOf(merchantId: string): Promise<Member> {
    const held = await Promise.all(
      members().map(async (member) => ({ member, keys: await member.admin.keys(`{acg:${merchantId}}:*`) })),
    );
    const owners = held.filter(({ keys }) => keys.length > 0);
    assert.equal(owners.length, 1, 'the keys of a merchant lie on one node');
    return owners[0]?.member ?? assert.fail();
  }

  /** The ports that the nodes name for each other. */
  async function namedPorts(): Promise<readonly number[]> {
    const tables = await Promise.all(members().map(({ admin }) => admin.call('CLUSTER', 'SLOTS')));
    return tables.flatMap((slots) => (slots as [number, number, [string, number]][]).map(([, , [, port]]) => port));
  }

  async function opened(t: TestContext) {
    const merchantId = randomUUID();
    const store = await open(merchantId);
    t.after(() => store.close());
    const record = recordIn(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
    return { merchantId, store, record };
  }

  it('holds all keys of a merchant on one node, whichever node it is', async (t) => {
    const owners = new Set<Member['server']>();
    for (let tried = 0; owners.size < 3; tried += 1) {
      assert.ok(tried < 60, 'some node is never used');
      const { merchantId, store, record } = await opened(t);
      assert.equal((await store.ledger.advance(move(record, 'settling'))).kind, 'done');
      await store.check();
      owners.add((await ownerOf(merchantId)).server);
    }
  });

  it('a slot that moved to another node is found there, without an error', async (t) => {
    const merchantId = randomUUID();
    const store = await open(merchantId);
    t.after(() => store.close());
    await store.check();
    const owner = await ownerOf(merchantId);
    await owner.admin.del(`{acg:${merchantId}}:ready`, `{acg:${merchantId}}:ap2:epoch`);
    const slot = Number(await owner.admin.call('CLUSTER', 'KEYSLOT', `{acg:${merchantId}}`));
    const next = members().find(({ admin }) => admin !== owner.admin) ?? assert.fail();
    const id = String(await next.admin.call('CLUSTER', 'MYID'));
    for (const { admin } of [next, owner]) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id);
    const record = recordIn(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
    assert.equal((await store.ledger.advance(move(record, 'settling'))).kind, 'done');
    assert.equal((await ownerOf(merchantId)).server, next.server);
  });

  it('a node that hangs and dies: a command is refused soon, not sent again, and served once the node is back', async (t) => {
    const { merchantId, store, record } = await opened(t);
    const { ledger, feed } = store;
    const { server } = await ownerOf(merchantId);
    const command = move(record, 'settling', { events: [event('payment.verified', record.requestId)] });
    process.kill(server.pid, 'SIGSTOP');
    const sent = performance.now();
    await assert.rejects(ledger.advance(command), StoreError);
    const ms = performance.now() - sent;
    assert.ok(ms < PROMPT_MS, `${ms} ms`);
    await server.kill();
    assert.notEqual((await store.check()).status, 'ok');
    await server.restart();
    await until(async () => (await store.check()).status === 'ok', 'the store does not recover');
    assert.equal((await ledger.read(record.payId))?.state, 'reserved');
    assert.equal((await ledger.advance(command)).kind, 'done');
    assert.equal((await feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
  });

  it('a command whose answer is lost is not sent again by the client', async (t) => {
    const { merchantId } = await opened(t);
    const { admin } = await ownerOf(merchantId);
    const [, port] = (await admin.config('GET', 'port')) as readonly string[];
    const line = await startTcpProxy({ host: '127.0.0.1', port: Number(port) });
    t.after(() => line.stop());
    // The node names the line as its address, so the client goes through it.
    await admin.config('SET', 'cluster-announce-port', String(line.port));
    const nodes = [{ host: '127.0.0.1', port: line.port }];
    const store = await openRedisStore({ cluster: { nodes }, merchantId, limits: LIMITS });
    t.after(() => store.close());
    const lost = line.loseReply();
    // Without a number, so the store cannot recognise a repetition.
    await assert.rejects(store.feed.append([event('resource.requested', 'r')]), StoreError);
    await lost;
    await until(async () => (await store.check()).status === 'ok', 'the store does not reconnect');
    assert.equal((await store.feed.page({ limit: 10 })).events.length, 1);
    await admin.config('SET', 'cluster-announce-port', '0');
    // The other nodes learn of it with the next ping; until then they redirect to the closed line.
    await until(async () => (await namedPorts()).every((named) => named !== line.port), 'the line is still named');
  });

  it('asks the node that has our slot how it is set up, not any other', async (t) => {
    const { merchantId } = await opened(t);
    const owner = await ownerOf(merchantId);
    for (const { admin } of members()) {
      await admin.config('SET', 'appendonly', 'no');
      const fresh = await open(merchantId);
      t.after(() => fresh.close());
      const { status } = await fresh.check();
      assert.equal(status, admin === owner.admin ? 'degraded' : 'ok');
      await admin.config('SET', 'appendonly', 'yes');
    }
  });

  it('needs the same rights as one server, and those to ask for the nodes of the slots', async (t) => {
    const merchantId = randomUUID();
    const rights = [...leastRights(merchantId), ...CLUSTER_RIGHTS];
    for (const { admin } of members()) await admin.call('ACL', 'SETUSER', 'gateway', 'on', '>secret', ...rights);
    const login = { username: 'gateway', password: 'secret' };
    const store = await openRedisStore({ cluster: { nodes: cluster.nodes }, ...login, merchantId, limits: LIMITS });
    t.after(() => store.close());
    assert.deepEqual(await store.check(), { status: 'ok' });
    const record = recordIn(await store.ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
    assert.equal((await store.ledger.advance(move(record, 'settling'))).kind, 'done');
  });
});
