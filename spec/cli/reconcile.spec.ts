import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { getAddress, type Hex } from 'viem';
import { UsageError } from '../../src/cli/program.ts';
import { decided, readDecision, wasLost } from '../../src/cli/reconcile.ts';
import { RETRY_WINDOW_MS } from '../../src/payments/ledger/table.ts';
import { leaveToOperator } from '../../src/payments/settlement/reconciler.ts';
import { RECEIPT_ID, type Receipt, receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openStore } from '../../src/store/open.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { move, terms as paymentTerms, recordIn } from '../payments/ledger/samples.ts';
import { HASH, worldOfEachTest } from '../payments/settlement/world.ts';
import { type Terms, termsFor } from '../payments/x402/signing.ts';
import { chainActors } from '../payments/x402/stage.ts';
import { type ConfigObject, CURRENCY, type WorldParts, worldConfig, writeConfig } from '../support/config.ts';
import { startRedis } from '../support/redis.ts';
import { acg, type CommandRun } from './acg.ts';
import { startPaidChain } from './paid-chain.ts';

const MERCHANT_ID = 'market-shop';
const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 1_000, replicas: 1 };

type Engine = Parameters<typeof openStore>[0]['engine'];

const RECONCILE = ['reconcile', '--from-chain'];
const UNREACHABLE = 'http://127.0.0.1:9';
const x402 = (changes: ConfigObject): ConfigObject => ({ payments: { x402: changes } });
const remote = { mode: 'remote', url: UNREACHABLE, privateKey: undefined };

type Row = readonly [what: string, args: readonly string[], code: number, message: RegExp, overrides?: ConfigObject];

describe('acg reconcile --from-chain', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-reconcile-'));
  const sqlite = { kind: 'sqlite', path: join(folder, 'lost.db') } as const;
  let chain: Chain;
  let terms: Terms;
  let payer: string;
  let paid: ReadonlyMap<string, string>;
  let halfway: number;

  before(async () => {
    ({ chain, terms, payer, paid, halfway } = await startPaidChain());
  });
  after(async () => {
    await chain.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const configFile = async (
    storage: { readonly sqlite: { readonly path: string } } | { readonly redis: { readonly url: string } },
    overrides: ConfigObject = {},
    others: WorldParts['others'] = [],
  ) => {
    const config = worldConfig({
      others,
      backendUrl: 'http://127.0.0.1:3000',
      chain,
      storage,
      facilitator: { mode: 'local' },
      ports: { agents: 8402, management: 8403 },
      payTo: terms.payTo,
      overrides,
    });
    const path = join(folder, `${Object.keys(storage)[0]}.yaml`);
    await writeConfig(path, config);
    return path;
  };
  const reconcile = async (
    ...args: readonly string[]
  ): Promise<CommandRun & { readonly receipts: readonly Receipt[] }> => {
    const run = await acg(folder, ['reconcile', '--from-chain', ...args]);
    return { ...run, receipts: run.lines.map((line) => JSON.parse(line) as Receipt) };
  };
  const withStore = async <T>(engine: Engine, use: (store: Store) => Promise<T>) => {
    const store = await openStore({ engine, merchantId: MERCHANT_ID, ...LIMITS });
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  };
  const bookOf = (engine: Engine) =>
    withStore(engine, async ({ receipts }) => (await receipts.page({ limit: 500 })).receipts);
  const newestFirst = (a: Receipt, b: Receipt): number => (a.id < b.id ? 1 : -1);
  const keys = (receipts: readonly Receipt[]) => receipts.map(({ payment }) => payment?.replayKey);

  it('rebuilds the receipts of exactly the payments, once', async () => {
    const path = await configFile({ sqlite: { path: sqlite.path } });
    const dry = await reconcile('--dry-run', '--config', path);
    assert.deepEqual([dry.code, keys(dry.receipts)], [0, [...paid.keys()]], dry.errors);
    assert.deepEqual(await bookOf(sqlite), []);

    // One of them the book still knows, under another id; one was delivered, and its receipt
    // dropped for the bounds.
    const known = [...paid.keys()].at(-1);
    const remembered = dry.receipts.find(({ payment }) => payment?.replayKey === known) ?? assert.fail('not found');
    const [inLedger = ''] = paid.keys();
    await withStore(sqlite, async ({ receipts, ledger }) => {
      await receipts.write([
        { ...remembered, id: remembered.id.replace(/.$/, 'f'), requestId: 'req_1', delivered: true },
      ]);
      const terms = { ...paymentTerms(), payId: inLedger };
      const record = recordIn(await ledger.reserve({ terms, owner: 'o', leaseMs: 60_000 }));
      for (const to of ['settling', 'settled', 'delivered'] as const) await ledger.advance(move(record, to));
      // A reservation alone proves nothing: it may be given up, and the money has moved.
      const [, begun = ''] = paid.keys();
      await ledger.reserve({ terms: { ...paymentTerms(), payId: begun }, owner: 'o', leaseMs: 60_000 });
    });
    const first = await reconcile('--config', path);
    const expected = [...paid.keys()].filter((key) => key !== known && key !== inLedger);
    assert.deepEqual([first.code, keys(first.receipts)], [0, expected], first.errors);
    assert.match(first.errors, /6 payments, 2 known already, 4 receipts written\n$/);
    const book = await bookOf(sqlite);
    assert.deepEqual(new Set(keys(book)), new Set([known, ...expected]));
    assert.equal(book.length, expected.length + 1);
    const times = book.map(({ payment }) => payment?.settledAt ?? '');
    assert.deepEqual(times, times.toSorted().toReversed(), 'newest first, by the time of the chain');

    const second = await reconcile('--config', path);
    assert.deepEqual([second.code, second.receipts], [0, []]);
    assert.deepEqual(await bookOf(sqlite), book);
  });

  it('has what the chain shows, and nothing else', async () => {
    const path = await configFile({ sqlite: { path: ':memory:' } });
    const { receipts } = await reconcile('--config', path);
    for (const receipt of receipts) {
      const { payment } = receipt;
      assert.match(receipt.id, RECEIPT_ID);
      const block = (await chain.request('eth_getTransactionReceipt', [payment?.externalReference])) as {
        blockNumber: Hex;
      };
      const { timestamp } = (await chain.request('eth_getBlockByNumber', [block.blockNumber, false])) as {
        timestamp: Hex;
      };
      assert.deepEqual(receipt, {
        id: receipt.id,
        requestId: `chain_${payment?.replayKey.slice(0, 32)}`,
        resourceId: receipt.resourceId,
        protocol: 'http',
        at: receipt.at,
        delivered: false,
        backendStatus: 0,
        durationMs: 0,
        payment: {
          status: 'settled',
          provider: 'x402',
          amount: payment?.amount,
          currency: CURRENCY,
          network: terms.network,
          asset: terms.asset,
          payer: getAddress(payer),
          payee: getAddress(terms.payTo),
          externalReference: paid.get(payment?.replayKey ?? ''),
          replayKey: payment?.replayKey,
          settledAt: new Date(Number(timestamp) * 1_000).toISOString(),
        },
        metadata: { recovered: 'chain' },
      });
    }
    const listed = receipts.map(({ resourceId, payment }) => [resourceId, payment?.amount]);
    assert.deepEqual(listed, [
      ['market_report', '0.01'],
      ['market_report', '0.01'],
      ['price_list', '0.005'],
      ['unknown', '0.001'],
      ['unknown', '1.234567'],
      ['market_report', '0.01'],
    ]);
    assert.deepEqual(
      receipts.map(({ id }) => id.slice(0, 21)).toSorted(),
      receipts.map(({ id }) => id.slice(0, 21)),
    );
  });

  it('begins at --since', async () => {
    const path = await configFile({ sqlite: { path: ':memory:' } });
    const since = async (value: string) => (await reconcile('--since', value, '--config', path)).receipts.length;
    assert.equal(await since(String(halfway + 1)), 5);
    const halfAnHour = new Date(Date.now() + 1_800_000).toISOString();
    assert.equal(await since(halfAnHour), 5);
    assert.equal(await since('2020-01-31'), 6);
    // One month and a day later everything is older than the default search.
    const snapshot = await chain.request('evm_snapshot', []);
    await chain.request('evm_increaseTime', [31 * 86_400]);
    await chain.request('evm_mine', []);
    assert.equal((await reconcile('--config', path)).receipts.length, 0);
    await chain.request('evm_revert', [snapshot]);
  });

  it('works on Redis as well', async () => {
    const redis = await startRedis();
    try {
      const path = await configFile({ redis: { url: redis.url } });
      const first = await reconcile('--config', path);
      assert.deepEqual(keys(first.receipts), [...paid.keys()], first.errors);
      assert.deepEqual(await bookOf({ kind: 'redis', url: redis.url }), first.receipts.toSorted(newestFirst));
      assert.deepEqual((await reconcile('--config', path)).receipts, []);
    } finally {
      await redis.stop();
    }
  });

  describe('on two networks', () => {
    type Beside = NonNullable<WorldParts['others']>[number];
    let second: Chain;
    let elsewhere: string;
    let path: string;
    before(async () => {
      second = await startChain(0, undefined, 1_337);
      const there = { ...termsFor(second.token, second.chainId), payTo: terms.payTo };
      const actors = chainActors(second, there);
      const { proof } = await actors.buyer();
      await actors.submit(proof);
      elsewhere = proof.payId;
      path = await withSecond('both.db', {});
    });
    after(() => second.stop());
    const withSecond = (store: string, entry: Partial<Beside>) => {
      const others = [{ chain: second, facilitator: { mode: 'local' }, payTo: terms.payTo, ...entry } as const];
      return configFile({ sqlite: { path: join(folder, store) } }, {}, others);
    };

    it('rebuilds the receipts of both, each with its network and price', async () => {
      const { code, receipts, errors } = await reconcile('--dry-run', '--config', path);
      assert.deepEqual([code, keys(receipts)], [0, [...paid.keys(), elsewhere]], errors);
      const last = receipts.at(-1);
      assert.deepEqual([last?.payment?.network, last?.resourceId], ['eip155:1337', 'market_report']);
      assert.match(errors, /^eip155:31337: blocks .* 6 payments/m);
      assert.match(errors, /^eip155:1337: blocks .* 1 payments/m);
    });

    it('knows the prices of one that is not offered any more', async () => {
      const stopped = await withSecond('both.db', { offered: false });
      const { receipts, errors } = await reconcile('--dry-run', '--config', stopped);
      assert.equal(receipts.at(-1)?.resourceId, 'market_report', errors);
    });

    it('takes no block number, which each network has its own of', async () => {
      const { code, errors } = await reconcile('--since', '1', '--config', path);
      assert.equal(code, 64);
      assert.match(errors, /--since must be a time/);
    });

    it('rebuilds the receipts of one where the node of the other is away', async () => {
      const away = { ...second, rpcUrl: UNREACHABLE };
      const run = await reconcile('--config', await withSecond('one.db', { chain: away }));
      assert.deepEqual([run.code, keys(run.receipts)], [69, [...paid.keys()]]);
      assert.match(run.errors, /eip155:1337: .*ECONNREFUSED/);
    });

    it('refuses an entry without a node, by its place', async () => {
      const blind = { chain: { ...second, rpcUrl: '' }, facilitator: { mode: 'remote', url: UNREACHABLE } } as const;
      const run = await reconcile('--config', await withSecond('none.db', blind));
      assert.equal(run.code, 78);
      assert.match(run.errors, /payments\.x402\[1\]\.rpcUrl: is missing/);
    });
  });

  describe('names what is missing:', () => {
    const rows: readonly Row[] = [
      ['where from', ['reconcile'], 64, /--from-chain/],
      ['a readable beginning', [...RECONCILE, '--since', 'yesterday'], 64, /block number, or ISO 8601/],
      ['the zone of a time', [...RECONCILE, '--since', '2026-01-01T00:00'], 64, /block number, or ISO 8601/],
      ['a block that is there', [...RECONCILE, '--since', '999999'], 64, /after the newest block/],
      ['a time that has come', [...RECONCILE, '--since', '2999-01-01'], 64, /after the newest block/],
      [
        'a command that knows the option',
        ['validate', '--dry-run'],
        64,
        /^unknown option '--dry-run'; acg validate --help/,
      ],
      ['a node', RECONCILE, 78, /x402\.rpcUrl: is missing/, x402({ rpcUrl: undefined, facilitator: remote })],
      ['a node that answers', RECONCILE, 69, /ECONNREFUSED/, x402({ rpcUrl: UNREACHABLE })],
      ['a chain that fits', RECONCILE, 1, /assetDecimals is 6, not 9/, x402({ assetDecimals: 9 })],
      [
        'a store that answers',
        RECONCILE,
        69,
        /the store \(redis\) cannot be used/,
        { storage: { sqlite: undefined, redis: { url: 'redis://127.0.0.1:9' } } },
      ],
    ];
    for (const [what, args, code, message, overrides] of rows)
      it(what, async () => {
        const path = await configFile({ sqlite: { path: ':memory:' } }, overrides);
        const run = await acg(folder, [...args, '--config', path]);
        assert.deepEqual([run.code, run.lines], [code, []], run.errors);
        assert.match(run.errors, message);
      });
  });
});

describe('a payment whose receipt is not in the book', () => {
  const NOW_MS = 1_800_000_000_000;
  const at = (ageHours: number): number => NOW_MS - ageHours * 3_600_000;
  const range = { from: receiptId(at(300)), to: receiptId(at(10)) };
  for (const [what, ageHours, trimmed, lost] of [
    ['younger than all that was dropped', 5, range, true],
    ['as old as what was dropped, and the ledger would know of its delivery', 20, range, true],
    ['as old as what was dropped', 30, range, false],
    ['older than all that was dropped: the store was lost after it', 400, range, true],
    ['of any age, and nothing was dropped', 400, undefined, true],
  ] as const)
    it(`was ${lost ? 'lost' : 'perhaps delivered and dropped'} when it is ${what}`, () => {
      assert.equal(wasLost(receiptId(at(ageHours)), at(ageHours), trimmed, NOW_MS), lost);
    });
});

describe('acg reconcile --decide', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, receipts, types, later } = world;
  const decide = (was: 'paid' | 'unpaid' | 'unclaimed', transaction?: string) =>
    decided(world.ledger, { payId: world.terms.payId, was, ...(transaction === undefined ? {} : { transaction }) });

  beforeEach(async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await settleOnce();
    world.clock = world.terms.validBefore * 1_000 + RETRY_WINDOW_MS;
    const open = await record();
    assert.ok(open !== undefined);
    await leaveToOperator(world.ledger, open, () => undefined);
    assert.equal((await record())?.state, 'unresolved');
  });

  it('paid: it is settled by the decision, its buyer collects it for a day, and it has its receipt', async () => {
    await decide('paid', HASH);
    const { state, evidence, transaction, settledAt } = (await record()) ?? {};
    assert.deepEqual([state, evidence, transaction, settledAt], ['settled', 'operator', HASH, world.clock]);
    const [receipt, ...others] = await receipts();
    assert.deepEqual(
      [receipt?.payment?.status, receipt?.payment?.externalReference, receipt?.delivered, others.length],
      ['settled', HASH, false, 0],
    );
    assert.equal((await types()).at(-1), 'payment.settled');
    later(1_000);
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    await world.deliver(result);
    assert.equal((await receipts())[0]?.delivered, true);
  });

  it('unpaid: its buyer is asked to pay anew, and no receipt is left', async () => {
    await decide('unpaid');
    const { state, evidence } = (await record()) ?? {};
    assert.deepEqual([state, evidence], ['refused', 'operator']);
    assert.deepEqual(await receipts(), []);
    assert.equal((await types()).at(-1), 'payment.rejected');
    const result = await settleOnce();
    assert.ok(result.kind === 'refused' && result.owed.phase === 'settle');
  });

  it('unclaimed: its buyer is told that the authorization is used, and no receipt is left', async () => {
    await decide('unclaimed');
    const { state, evidence } = (await record()) ?? {};
    assert.deepEqual([state, evidence], ['refused', 'unclaimed']);
    assert.deepEqual(await receipts(), []);
    assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
  });

  it('is made once, and only for an unresolved payment', async () => {
    await decide('unpaid');
    await assert.rejects(decide('paid'), /is refused: it waits for no decision/);
    await assert.rejects(decided(world.ledger, { payId: '0'.repeat(64), was: 'paid' }), /not known/);
  });

  it('reads its arguments, and refuses incomplete ones', () => {
    const id = 'a'.repeat(64);
    assert.deepEqual(readDecision(id, 'paid', HASH.toUpperCase().replace('0X', '0x')), {
      payId: id,
      was: 'paid',
      transaction: HASH,
    });
    assert.deepEqual(readDecision(id, 'unpaid', undefined), { payId: id, was: 'unpaid' });
    for (const [payId, word, hash] of [
      ['pay_1', 'paid', undefined],
      [id, undefined, undefined],
      [id, 'perhaps', undefined],
      [id, 'paid', '0x12'],
      [id, 'unpaid', HASH],
      [id, 'unclaimed', HASH],
    ] as const)
      assert.throws(() => readDecision(payId, word, hash), UsageError);
  });
});
