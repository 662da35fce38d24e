import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, type Hex } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { fencingToken } from '../../../src/payments/settlement/attempt.ts';
import { CLOCK_MARGIN_SECONDS, createChain } from '../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../src/payments/x402/chain/node.ts';
import { prepareKey } from '../../../src/payments/x402/evm/account.ts';
import { payRefund, REFUND_LIFE_SECONDS } from '../../../src/payments/x402/refund/pay.ts';
import { recordRefund } from '../../../src/payments/x402/refund/record.ts';
import { createRefundSender } from '../../../src/payments/x402/refund/sender.ts';
import { refundNonce } from '../../../src/payments/x402/refund/transfer.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { REFUND, recordIn } from '../../payments/ledger/samples.ts';
import { PRICE_UNITS } from '../../payments/x402/signing.ts';
import { startRedis } from '../../support/redis.ts';
import { type Owed, openRefundShop, type RefundShop } from './shop.ts';

/** Between looks at the transactions that wait, milliseconds. */
const POLL_MS = 20;

describe('acg refunds pay', () => {
  const ends = new AsyncDisposableStack();
  let shop: RefundShop;
  before(async () => {
    shop = await openRefundShop(ends);
  });
  after(() => ends.disposeAsync());

  const pay = (...words: readonly string[]) => shop.acg('refunds', 'pay', ...words);
  const withKey = (...words: readonly string[]) => pay('--key-file', shop.keyFile, '--yes', ...words);
  const balanceOf = ({ payer }: Owed) => shop.chain.balanceOf(payer);
  const receiptOf = ({ payId }: Owed): Promise<Receipt | undefined> =>
    shop.withStore(async ({ receipts }) => (await receipts.page({ limit: 1, payment: payId })).receipts[0]);
  const stateOf = ({ payId }: Owed) => shop.withStore(async ({ ledger }) => (await ledger.read(payId))?.state);
  const printed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line));

  it('prints the transfers to make where it has no key, and where it is asked to', async () => {
    const owed = await shop.owe();
    for (const words of [[], ['--dry-run', '--key-file', shop.keyFile]]) {
      const { code, lines, errors } = await pay('--all-due', ...words);
      assert.equal(code, 0, errors);
      const [{ receiptId, payer, payee, amount, units, nonce }] = printed(lines);
      assert.deepEqual([receiptId, payer, payee], [owed.receiptId, owed.payer, shop.payee.address]);
      assert.deepEqual([amount, units, nonce], ['0.01', '10000', refundNonce(owed.payId)]);
      assert.match(errors, /nothing was sent: 0\.01 TUSD on eip155:31337 in 1 refund\n$/);
    }
    assert.equal(await balanceOf(owed), 0n);
    assert.equal(await stateOf(owed), 'refundDue');
    await withKey('--all-due');
  });

  it('sends each of them back once, and the receipt says how', async () => {
    const owed = [await shop.owe(), await shop.owe(), await shop.owe()];
    const { code, lines, errors } = await withKey('--all-due');
    assert.equal(code, 0, errors);
    const sent = new Map(printed(lines).map((line) => [line.receiptId, line]));
    assert.equal(sent.size, owed.length);
    for (const one of owed) {
      assert.equal(await balanceOf(one), PRICE_UNITS);
      const { refund, delivered, metadata } = (await receiptOf(one)) ?? {};
      const { transaction, before: earlier } = sent.get(one.receiptId);
      assert.deepEqual([refund?.status, refund?.transaction, earlier], ['refunded', transaction, false]);
      assert.deepEqual([delivered, metadata?.refundDue, await stateOf(one)], [false, undefined, 'refunded']);
    }
    const again = await withKey('--all-due');
    assert.deepEqual([again.code, again.lines, again.errors], [0, [], 'no refund to send\n']);
  });

  it('sends the same transaction again where the node has forgotten it', async () => {
    const owed = await shop.owe();
    const pool = async () => Number(((await shop.chain.request('txpool_status', [])) as { pending: string }).pending);
    await shop.chain.request('evm_setAutomine', [false]);
    let isOver = false;
    const run = withKey('--all-due').finally(() => {
      isOver = true;
    });
    try {
      while ((await pool()) === 0) {
        assert.ok(!isOver, 'nothing was sent');
        await delay(POLL_MS);
      }
      await shop.chain.request('anvil_dropAllTransactions', []);
      assert.equal(await pool(), 0);
    } finally {
      await shop.chain.request('evm_setAutomine', [true]);
    }
    const signed = (await receiptOf(owed))?.refund;
    const { code, lines, errors } = await run;
    assert.equal(code, 0, errors);
    const [{ transaction, before: earlier }] = printed(lines);
    assert.deepEqual([signed?.status, signed?.transaction], ['refunding', transaction]);
    assert.deepEqual([earlier, await balanceOf(owed)], [false, PRICE_UNITS]);
  });

  it('finds on the chain what a store that was lost had sent', async () => {
    const owed = await shop.owe();
    const [{ transaction }] = printed((await withKey('--all-due')).lines);
    // The buyer came again, and the merchant failed again.
    await shop.forget(owed);
    const { code, lines } = await withKey('--all-due');
    assert.deepEqual([code, printed(lines).map((line) => [line.transaction, line.before])], [0, [[transaction, true]]]);
    assert.equal(await balanceOf(owed), PRICE_UNITS);
    assert.equal(await stateOf(owed), 'refunded');
  });

  it('is told by the chain to a store that has nothing but the chain', async () => {
    const owed = await shop.owe();
    const [{ transaction }] = printed((await withKey('--all-due')).lines);
    await shop.forget(owed, false);
    const { code, errors } = await shop.acg('reconcile', '--from-chain');
    assert.equal(code, 0, errors);
    const { refund, metadata } = (await receiptOf(owed)) ?? {};
    assert.deepEqual([refund?.status, refund?.transaction, metadata?.recovered], ['refunded', transaction, 'chain']);
    const named = await withKey(owed.receiptId);
    assert.deepEqual([named.code, named.errors], [64, `${owed.receiptId}: it was sent back by ${transaction}\n`]);
  });

  it('leaves what its buyer can still collect, and what may have arrived unless that is named', async () => {
    const open = await shop.owe('undelivered');
    const uncertain = await shop.owe('refundDue', { sending: 'begun' });
    const refused = await withKey(open.receiptId);
    assert.deepEqual(
      [refused.code, refused.errors],
      [64, `${open.receiptId}: it is not due: its buyer can still collect, which --now ends\n`],
    );
    const left = await withKey('--all-due');
    assert.equal(left.code, 1);
    assert.match(left.errors, new RegExp(`^${uncertain.receiptId}: its answer may have arrived: ask the payer`));
    assert.deepEqual([await balanceOf(open), await balanceOf(uncertain)], [0n, 0n]);
    const named = await withKey('--all-due', '--confirm-uncertain', uncertain.receiptId);
    assert.equal(named.code, 0, named.errors);
    assert.deepEqual([await balanceOf(open), await balanceOf(uncertain)], [0n, PRICE_UNITS]);
    const again = await withKey('--all-due', '--confirm-uncertain', uncertain.receiptId);
    assert.equal(again.code, 0);
    assert.match(again.errors, new RegExp(`^--confirm-uncertain ${uncertain.receiptId}: no refund of it is due here`));
  });

  it('says of a transfer to make that one was signed for it already', async () => {
    const owed = await shop.owe();
    const poor = join(shop.folder, 'penniless.key');
    writeFileSync(poor, generatePrivateKey());
    const failed = await withKey('--all-due', '--gas-key-file', poor);
    assert.match(failed.errors, /cannot pay the gas/);
    const { refund } = (await receiptOf(owed)) ?? {};
    const { lines, errors } = await pay('--all-due');
    assert.equal(printed(lines)[0].signed, refund?.transaction);
    assert.match(errors, new RegExp(`^${owed.receiptId}: ${refund?.transaction} was signed for it`));
    await withKey('--all-due');
    assert.equal(await balanceOf(owed), PRICE_UNITS);
  });

  it('neither prints nor adds up what was paid in another asset, whose decimals it does not know', async () => {
    const owed = await shop.owe();
    const asset = `0x${'5a'.repeat(20)}` as const;
    const other = await shop.owe('refundDue', { asset, currency: 'OLD' });
    for (const words of [[], ['--dry-run', '--key-file', shop.keyFile]]) {
      const { code, lines, errors } = await pay('--all-due', ...words);
      assert.deepEqual([code, printed(lines).map(({ receiptId }) => receiptId)], [1, [owed.receiptId]]);
      assert.match(errors, new RegExp(`^${other.receiptId}: it was paid in ${asset} on eip155:31337, and this`));
      assert.match(errors, /nothing was sent: 0\.01 TUSD on eip155:31337 in 1 refund\n$/);
    }
    const sent = await withKey('--all-due', '--max-total', '0.01');
    assert.equal(printed(sent.lines).length, 1, sent.errors);
    assert.equal(await balanceOf(owed), PRICE_UNITS);
    await shop.forget(other, false);
  });

  it('sends back now what its buyer could still collect', async () => {
    const [first, byHand] = [await shop.owe('undelivered'), await shop.owe('undelivered')];
    const all = await withKey('--all-due', '--now');
    assert.deepEqual([all.code, all.errors], [64, '--now takes receipts by their names, not --all-due\n']);
    const dry = await pay(first.receiptId, '--now', '--dry-run');
    assert.deepEqual([dry.code, printed(dry.lines)[0].collectable, await stateOf(first)], [0, true, 'undelivered']);
    const { code, lines, errors } = await withKey(first.receiptId, '--now');
    assert.deepEqual([code, printed(lines).length], [0, 1], errors);
    assert.deepEqual([await balanceOf(first), await stateOf(first)], [PRICE_UNITS, 'refunded']);
    // Without a key it ends the collecting before a transfer is made by hand.
    const named = await pay(byHand.receiptId, '--now');
    assert.deepEqual([named.code, printed(named.lines)[0].receiptId], [0, byHand.receiptId]);
    assert.match(named.errors, /its buyer can no longer collect; acg refunds record takes the transfer down$/m);
    assert.equal(await stateOf(byHand), 'refundDue');
    await withKey('--all-due');
  });

  it('sends nothing back now while its buyer collects, nor when bytes left since it was read', async () => {
    const owed = await shop.owe('undelivered');
    await shop.withStore(async ({ ledger }) => {
      const terms = (await ledger.read(owed.payId)) ?? assert.fail();
      const collecting = recordIn(await ledger.reserve({ terms, owner: 'buyer', leaseMs: 60_000 }));
      const refused = await withKey(owed.receiptId, '--now');
      assert.deepEqual(
        [refused.code, refused.errors],
        [1, `${owed.receiptId}: a delivery to its buyer runs or has ended; run this again\n`],
      );
      await ledger.note({ ...fencingToken(collecting), leaseMs: 0 });
      const key = await prepareKey(readFileSync(shop.keyFile, 'utf8').trim());
      const rpc = createRpc(shop.chain.rpcUrl);
      const { chainId, asset } = shop.terms;
      const late: PaymentLedger['reserve'] = async (command) => {
        const record = recordIn(await ledger.reserve({ terms, owner: 'late buyer', leaseMs: 60_000 }));
        await ledger.note({ ...fencingToken(record), facts: { sending: 'begun' }, leaseMs: 0 });
        return ledger.reserve(command);
      };
      const outcome = await payRefund(
        {
          ledger: { ...ledger, reserve: late },
          chain: createChain(rpc),
          terms: shop.terms,
          signer: { address: shop.payee.address.toLowerCase(), sign: () => assert.fail('it is signed') },
          sender: createRefundSender(rpc, { chainId, asset }, key),
        },
        owed.payId,
        { confirmed: false, now: true },
      );
      await rpc.close();
      assert.deepEqual([outcome.kind, await balanceOf(owed)], ['left', 0n]);
      assert.match(JSON.stringify(outcome), /its answer may have arrived/);
    });
    await shop.forget(owed, false);
  });

  it('sends nothing for a payment that the chain does not show', async () => {
    const owed = await shop.owe('refundDue', { nonce: `0x${'77'.repeat(32)}` });
    const { code, errors } = await withKey(owed.receiptId);
    assert.equal(code, 1);
    assert.match(errors, /the chain does not show the payment/);
    assert.deepEqual([await balanceOf(owed), await stateOf(owed)], [0n, 'refundDue']);
    await shop.forget(owed, false);
  });

  it('keeps to its limits before anything is sent', async () => {
    const owed = [await shop.owe(), await shop.owe()];
    for (const [limit, says] of [
      [['--max-each', '0.009'], /0\.01 TUSD is more than --max-each 0\.009$/m],
      [['--max-total', '0.019'], /0\.02 TUSD on eip155:31337 in 2 refunds are more than --max-total 0\.019$/m],
      [['--max-total', 'much'], /^--max-total must be an amount such as 0\.05$/m],
    ] as const) {
      const { code, errors } = await withKey('--all-due', ...limit);
      assert.equal(code, 64);
      assert.match(errors, says);
    }
    for (const one of owed) assert.equal(await balanceOf(one), 0n);
    const { code } = await withKey('--all-due', '--max-each', '0.01', '--max-total', '0.02');
    assert.equal(code, 0);
    for (const one of owed) assert.equal(await balanceOf(one), PRICE_UNITS);
  });

  it('refuses keys and words that cannot be right', async () => {
    const owed = await shop.owe();
    const other = join(shop.folder, 'other.key');
    writeFileSync(other, generatePrivateKey());
    const wrong = join(shop.folder, 'wrong.key');
    writeFileSync(wrong, 'my key');
    const poor = ['--key-file', shop.keyFile, '--gas-key-file', other, '--yes'];
    for (const [words, code, says] of [
      [['--all-due', '--key-file', other, '--yes'], 1, /it was paid to 0x.{40}, and the key is of 0x/],
      [['--all-due', '--key-file', wrong, '--yes'], 66, /wrong\.key: is no private key, 64 hex digits/],
      [['--all-due', ...poor], 1, /0x.{40} cannot pay the gas: .*insufficient funds/i],
      [['--all-due', '--key-file', shop.keyFile], 64, /there is no terminal to ask on: add --yes/],
      [['--key-file', shop.keyFile], 64, /name receipts, or all of them with --all-due/],
      [['receipt_none', '--yes'], 64, /receipt_none: no undelivered receipt of this store/],
      [['--all-due', '--signer', 'cat'], 64, /--signer signs no transaction: add --gas-key-file/],
    ] as const) {
      const run = await pay(...words);
      assert.equal(run.code, code, run.errors);
      assert.match(run.errors, says);
      assert.doesNotMatch(run.errors, /my key/);
    }
    assert.equal(await balanceOf(owed), 0n);
    await withKey('--all-due');
  });

  it('makes no store where there is none', async () => {
    const config = JSON.parse(readFileSync(join(shop.folder, 'config.yaml'), 'utf8'));
    const path = join(shop.folder, 'mistyped.db');
    writeFileSync(join(shop.folder, 'mistyped.yaml'), JSON.stringify({ ...config, storage: { sqlite: { path } } }));
    const { code, errors } = await withKey('--all-due', '--config', 'mistyped.yaml');
    assert.deepEqual(
      [code, errors, existsSync(path)],
      [66, `storage.sqlite.path: ${path}: there is no store; run this where that of the gateways is\n`, false],
    );
  });

  it('asks a program for the signature, and checks whose it is', async () => {
    const owed = await shop.owe();
    const gasKey = join(shop.folder, 'gas.key');
    writeFileSync(gasKey, shop.chain.relayerKey);
    const program = (name: string, account: string): string => {
      const file = join(shop.folder, name);
      const viem = JSON.stringify(import.meta.resolve('viem/accounts'));
      writeFileSync(
        file,
        `#!${process.execPath}
import { text } from 'node:stream/consumers';
import { privateKeyToAccount } from ${viem};
const { domain, types: { EIP712Domain, ...types }, primaryType, message } = JSON.parse(await text(process.stdin));
console.log(await privateKeyToAccount(${account}).signTypedData({ domain, types, primaryType, message }));
`,
      );
      chmodSync(file, 0o700);
      return file;
    };
    const stranger = program('stranger.mjs', JSON.stringify(generatePrivateKey()));
    const foreign = await pay('--all-due', '--yes', '--signer', stranger, '--gas-key-file', gasKey);
    assert.equal(foreign.code, 1);
    assert.match(foreign.errors, /signed as 0x.{40}, and the payee is 0x/);
    assert.equal(await balanceOf(owed), 0n);
    const wallet = program('wallet.mjs', JSON.stringify(readFileSync(shop.keyFile, 'utf8').trim()));
    const signed = await pay('--all-due', '--yes', '--signer', wallet, '--gas-key-file', gasKey);
    assert.equal(signed.code, 0, signed.errors);
    assert.equal(await balanceOf(owed), PRICE_UNITS);
  });
});

describe('acg refunds on two networks, one of which is offered no more', () => {
  const ends = new AsyncDisposableStack();
  let shop: RefundShop;
  let second: Chain;
  before(async () => {
    second = ends.adopt(await startChain(0, undefined, 1_337), ({ stop }) => stop());
    shop = await openRefundShop(ends, { beside: second });
  });
  after(() => ends.disposeAsync());

  const pay = (...words: readonly string[]) =>
    shop.acg('refunds', 'pay', '--key-file', shop.keyFile, '--yes', ...words);
  const oweTwice = async () => [await shop.owe(), await shop.owe('refundDue', {}, second)] as const;
  const balances = async ([near, far]: readonly [Owed, Owed]) =>
    Promise.all([shop.chain, second].flatMap((chain) => [near, far].map(({ payer }) => chain.balanceOf(payer))));
  const NOTHING = [0n, 0n, 0n, 0n];

  it('sends each back on the network where it was paid, within limits for all together', async () => {
    const owed = await oweTwice();
    const dry = await pay('--all-due', '--dry-run');
    assert.deepEqual(
      dry.lines.map((line) => JSON.parse(line).network),
      ['eip155:31337', 'eip155:1337'],
      dry.errors,
    );
    const over = await pay('--all-due', '--max-total', '0.019');
    const sum = '0\\.01 TUSD on eip155:31337 in 1 refund, 0\\.01 TUSD on eip155:1337 in 1 refund';
    assert.equal(over.code, 64);
    assert.match(over.errors, new RegExp(`^${sum} are more than --max-total 0\\.019$`, 'm'));
    assert.deepEqual(await balances(owed), NOTHING);
    const { code, lines, errors } = await pay('--all-due', '--max-total', '0.02');
    assert.deepEqual([code, lines.length], [0, 2], errors);
    assert.deepEqual(await balances(owed), [PRICE_UNITS, 0n, 0n, PRICE_UNITS]);
  });

  it('takes down a transfer of the network where it was paid alone', async () => {
    const [near, far] = await oweTwice();
    const hash = await transfer(second, shop.payee.address, far.payer, PRICE_UNITS);
    const record = ({ receiptId }: Owed) => shop.acg('refunds', 'record', receiptId, hash);
    assert.equal((await record(near)).code, 1);
    assert.equal((await record(far)).code, 0);
    assert.equal((await pay('--all-due')).code, 0);
  });

  // Last, because it ends the second chain.
  it('sends what it can where a node is away', async () => {
    const owed = await oweTwice();
    await second.stop();
    const { code, lines, errors } = await pay('--all-due');
    assert.deepEqual([code, lines.map((line) => JSON.parse(line).receiptId)], [1, [owed[0].receiptId]]);
    assert.match(errors, /^eip155:1337: /m);
    assert.equal(await shop.chain.balanceOf(owed[0].payer), PRICE_UNITS);
  });
});

describe('acg refunds record', () => {
  const ends = new AsyncDisposableStack();
  let shop: RefundShop;
  before(async () => {
    shop = await openRefundShop(ends);
  });
  after(() => ends.disposeAsync());

  const byHand = (payer: string, units: bigint) => transfer(shop.chain, shop.payee.address, payer, units);
  const record = ({ receiptId }: Owed, hash: string, ...words: readonly string[]) =>
    shop.acg('refunds', 'record', receiptId, hash, ...words);

  it('takes down now what its buyer could still collect, and ends nothing for another transfer', async () => {
    const owed = await shop.owe('undelivered');
    const stateOf = () => shop.withStore(async ({ ledger }) => (await ledger.read(owed.payId))?.state);
    const wrong = await record(owed, `0x${'98'.repeat(32)}`, '--now');
    assert.deepEqual([wrong.code, await stateOf()], [1, 'undelivered']);
    const hash = await byHand(owed.payer, PRICE_UNITS);
    assert.match((await record(owed, hash)).errors, /its buyer can still collect, which --now ends$/m);
    const { code, errors } = await record(owed, hash, '--now');
    assert.deepEqual([code, await stateOf()], [0, 'refunded'], errors);
  });

  it('takes down a transfer that was made by hand, and takes none twice', async () => {
    const owed = await shop.owe();
    const hash = await byHand(owed.payer, PRICE_UNITS);
    const { code, lines, errors } = await record(owed, hash);
    assert.equal(code, 0, errors);
    assert.equal(JSON.parse(lines[0] ?? '').transaction, hash);
    const again = await record(owed, hash);
    assert.deepEqual([again.code, again.errors], [64, `${owed.receiptId}: it was sent back by ${hash}\n`]);
    // The same payer is owed as much again.
    const other = await shop.owe('refundDue', { payer: owed.payer });
    const taken = await record(other, hash);
    assert.equal(taken.code, 1);
    assert.match(taken.errors, /or for another refund$/m);
  });

  it('takes no transfer that an authorization of another refund made, also after a loss of the store', async () => {
    const sent = await shop.owe();
    const other = await shop.owe('refundDue', { payer: sent.payer });
    const { lines } = await shop.acg('refunds', 'pay', sent.receiptId, '--yes', '--key-file', shop.keyFile);
    const { transaction } = JSON.parse(lines[0] ?? '');
    for (const lose of [undefined, () => shop.forget(sent, false)]) {
      await lose?.();
      const { code, errors } = await record(other, transaction);
      assert.equal(code, 1);
      assert.match(errors, /or for another refund$/m);
    }
    await shop.forget(other, false);
  });

  it('takes no transfer from before the payment, and none for what the chain does not show', async () => {
    const first = await shop.owe();
    const hash = await byHand(first.payer, PRICE_UNITS);
    const later = await shop.owe('refundDue', { payer: first.payer });
    assert.match((await record(later, hash)).errors, /does not send 0\.01 to 0x.{40} after it was paid/);
    assert.equal((await record(first, hash)).code, 0);
    const unpaid = await shop.owe('refundDue', { payer: first.payer, nonce: `0x${'78'.repeat(32)}` });
    const sent = await byHand(first.payer, PRICE_UNITS);
    assert.match((await record(unpaid, sent)).errors, /the chain does not show the payment/);
    await shop.forget(unpaid, false);
  });

  it('refuses another sum, another payer, a transaction that is none, and the payment itself', async () => {
    const owed = await shop.owe();
    const hashes = [
      await byHand(owed.payer, PRICE_UNITS - 1n),
      await byHand(shop.payee.address, PRICE_UNITS),
      `0x${'99'.repeat(32)}`,
      owed.transaction,
    ];
    for (const hash of hashes) {
      const { code, errors } = await record(owed, hash);
      assert.equal(code, 1);
      assert.match(errors, /does not send 0\.01 to 0x.{40} after it was paid, or for another refund$/m);
    }
    const { code, errors } = await record(owed, '0x12');
    assert.deepEqual([code, errors], [64, 'the transaction must be a hash: 0x and 64 hex digits\n']);
  });

  // Last, because it moves the clock of the chain.
  it('takes nothing down while a transfer that was signed for it can still be sent', async () => {
    const owed = await shop.owe();
    const gasKey = join(shop.folder, 'poor.key');
    writeFileSync(gasKey, generatePrivateKey());
    const keys = ['--key-file', shop.keyFile, '--gas-key-file', gasKey];
    assert.match((await shop.acg('refunds', 'pay', '--all-due', '--yes', ...keys)).errors, /cannot pay the gas/);
    const hash = await byHand(owed.payer, PRICE_UNITS);
    const early = await record(owed, hash);
    assert.equal(early.code, 1);
    assert.match(early.errors, /a transfer was signed for it, which can be sent until 20.*; record it after that$/m);
    // The clock of the command that signed may be ahead of the store's.
    await shop.chain.request('evm_increaseTime', [REFUND_LIFE_SECONDS + 60]);
    await shop.chain.request('evm_mine', []);
    assert.equal((await record(owed, hash)).code, 1);
    await shop.chain.request('evm_increaseTime', [CLOCK_MARGIN_SECONDS]);
    await shop.chain.request('evm_mine', []);
    const { code, errors } = await record(owed, hash);
    assert.equal(code, 0, errors);
  });
});

const ends = new AsyncDisposableStack();
let chain: Chain;
let redis: string;
before(async () => {
  chain = ends.adopt(await startChain(), ({ stop }) => stop());
  redis = ends.adopt(await startRedis(), ({ stop }) => stop()).url;
});
after(() => ends.disposeAsync());

for (const kind of ['sqlite', 'redis'] as const)
  describe(`refunds of one shop that several operators record at once, ${kind}`, () => {
    let shop: RefundShop;
    before(async () => {
      shop = await openRefundShop(ends, { chain, ...(kind === 'redis' ? { redis } : {}) });
    });

    it('take no transfer for two payments', async () => {
      const first = await shop.owe();
      const owed = [first, await shop.owe('refundDue', { payer: first.payer })];
      const hash = await byHand(shop, first.payer);
      const meet = meeting(owed.length);
      const outcomes = await Promise.all(owed.map((one) => record(shop, one, hash, { meet })));
      assert.deepEqual(outcomes.map(({ kind: end }) => end).toSorted(), ['left', 'refunded']);
      const states = await Promise.all(owed.map((one) => stateOf(shop, one)));
      assert.deepEqual(
        states,
        outcomes.map(({ kind: end }) => (end === 'refunded' ? 'refunded' : 'refundDue')),
      );
      // A second transfer is another one, also to the same payer.
      const left = owed[states.indexOf('refundDue')] ?? first;
      assert.equal((await record(shop, left, hash)).kind, 'left');
      assert.equal((await record(shop, left, await byHand(shop, first.payer))).kind, 'refunded');
    });

    it('are written once where both record the same transfer for the same payment', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      const meet = meeting(2);
      const outcomes = await Promise.all([record(shop, owed, hash, { meet }), record(shop, owed, hash, { meet })]);
      for (const outcome of outcomes) assert.partialDeepStrictEqual(outcome, { kind: 'refunded', transaction: hash });
    });

    it('are not recorded when a transfer was signed for them meanwhile', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      const signed = () => shop.withStore((store) => sign(store, owed.payId));
      assert.deepEqual(await record(shop, owed, hash, { meet: signed }), {
        kind: 'pending',
        why: 'it is refunding by now',
      });
      assert.equal(await stateOf(shop, owed), 'refunding');
    });

    it('are recorded once enough blocks confirm the transfer', async () => {
      const owed = await shop.owe();
      const hash = await byHand(shop, owed.payer);
      assert.deepEqual(await record(shop, owed, hash, { confirmations: 3 }), {
        kind: 'pending',
        why: `${hash} has too few blocks above it`,
      });
      await chain.request('anvil_mine', ['0x2']);
      assert.equal((await record(shop, owed, hash, { confirmations: 3 })).kind, 'refunded');
    });
  });

/** An operator with a store of its own. `meet`: before it learns what the transaction did. */
function record(
  shop: RefundShop,
  { payId }: Owed,
  hash: string,
  { meet, confirmations = 1 }: { readonly meet?: () => Promise<unknown>; readonly confirmations?: number } = {},
) {
  return shop.withStore(async ({ ledger, secrets }) => {
    const node = createRpc(chain.rpcUrl);
    const rpc: Rpc = {
      ...node,
      async call(method, params, deadlineMs) {
        const answer = await node.call(method, params, deadlineMs);
        if (method === 'eth_getTransactionReceipt' && params[0] === hash) await meet?.();
        return answer;
      },
    };
    try {
      const terms = { ...shop.terms, confirmations };
      return await recordRefund({ ledger, claims: secrets, rpc, chain: createChain(node), terms }, payId, hash);
    } finally {
      await node.close();
    }
  });
}

/** Lets callers go on when so many have come. */
function meeting(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let come = 0;
  return () => {
    come += 1;
    if (come === count) resolve();
    return promise;
  };
}

function byHand({ payee }: RefundShop, payer: string): Promise<string> {
  return transfer(chain, payee.address, payer, PRICE_UNITS);
}

/** Moves tokens without a refund. @returns the hash of the transaction */
function transfer(on: Chain, from: Hex, to: string, units: bigint): Promise<string> {
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args: [to as Hex, units] });
  return on.send(from, on.token.address, data);
}

async function sign({ ledger }: Store, payId: string) {
  const record = (await ledger.read(payId)) ?? assert.fail();
  const facts = { refundTransaction: REFUND };
  return ledger.advance({ ...fencingToken(record), to: 'refunding', leaseMs: 0, facts, events: [] });
}

function stateOf(shop: RefundShop, { payId }: Owed) {
  return shop.withStore(async ({ ledger }) => (await ledger.read(payId))?.state);
}
