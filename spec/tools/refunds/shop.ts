/** A shop that was paid on a real chain and owes refunds. */

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { PrivateKeyAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { paymentReceiptId, receiptOf } from '../../../src/payments/ledger/payment-receipt.ts';
import { fencingToken } from '../../../src/payments/settlement/attempt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { openStore } from '../../../src/store/open.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { type LineRun, openShell } from '../../cli/shell.ts';
import { move, terms as paymentTerms, recordIn } from '../../payments/ledger/samples.ts';
import { freshAccount, genuineProof, PRICE_UNITS, type Terms, termsFor } from '../../payments/x402/signing.ts';
import { chainActors } from '../../payments/x402/stage.ts';
import { worldConfig, writeConfig } from '../../support/config.ts';

const MERCHANT_ID = 'market-shop';
const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 10_000, replicas: 1 };

/** A payment of the shop, as the chain and its store have it. */
export interface Owed {
  readonly payId: string;
  readonly receiptId: string;
  readonly payer: string;
  readonly transaction: string;
}

export interface RefundShop {
  readonly chain: Chain;
  readonly terms: Terms;
  readonly folder: string;
  /** The account that was paid; `keyFile` has its key. */
  readonly payee: PrivateKeyAccount;
  readonly keyFile: string;
  /** Sells something real on a chain, the first unless given, and leaves it in this state. */
  owe(as?: 'refundDue' | 'undelivered', changes?: Partial<PaymentRecord>, on?: Chain): Promise<Owed>;
  /** Loses record and receipt; `again`: its buyer came back, and was not served once more. */
  forget(owed: Owed, again?: boolean): Promise<void>;
  /** Runs a command of a checkout beside the configuration of the shop. */
  acg(...words: readonly string[]): Promise<LineRun>;
  withStore<Result>(work: (store: Store) => Promise<Result>): Promise<Result>;
}

/**
 * @param setup `chain`: by default one of its own. `nodeFor`: what stands before its node, for the
 * commands alone. `redis`: the URL of the store; by default it is a file. `beside`: a second chain
 * of the configuration.
 */
export async function openRefundShop(
  ends: AsyncDisposableStack,
  setup: {
    readonly chain?: Chain;
    readonly nodeFor?: (rpcUrl: string) => Promise<string>;
    readonly redis?: string;
    readonly beside?: Chain;
  } = {},
): Promise<RefundShop> {
  const { nodeFor = async (rpcUrl) => rpcUrl } = setup;
  const folder = await temporaryDirectory(ends, 'acg-refunds-');
  const shell = openShell(ends);
  const chain = setup.chain ?? ends.adopt(await startChain(), ({ stop }) => stop());
  const key = generatePrivateKey();
  const payee = privateKeyToAccount(key);
  const keyFile = join(folder, 'payee.key');
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
  const chains = setup.beside === undefined ? [chain] : [chain, setup.beside];
  for (const { fundGas } of chains) await fundGas(payee.address);
  const termsOn = (on: Chain): Terms => ({ ...termsFor(on.token, on.chainId), payTo: payee.address });
  const terms = termsOn(chain);
  const path = join(folder, 'shop.db');
  const engine =
    setup.redis === undefined ? { kind: 'sqlite' as const, path } : { kind: 'redis' as const, url: setup.redis };
  const config = worldConfig({
    backendUrl: 'http://127.0.0.1:3000',
    chain: { ...chain, rpcUrl: await nodeFor(chain.rpcUrl) },
    others: chains
      .slice(1)
      .map((other) => ({ chain: other, facilitator: { mode: 'local' }, payTo: payee.address, offered: false })),
    storage: setup.redis === undefined ? { sqlite: { path } } : { redis: { url: setup.redis } },
    facilitator: { mode: 'local' },
    ports: { agents: 8402, management: 8403 },
    payTo: payee.address,
  });
  await writeConfig(join(folder, 'config.yaml'), config);
  const sold = new Map<string, Sold>();
  const accounts = new Map<string, ReturnType<typeof freshAccount>>();
  const withStore = async <Result>(work: (store: Store) => Promise<Result>): Promise<Result> => {
    const store = await openStore({ engine, merchantId: MERCHANT_ID, ...LIMITS });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  return {
    chain,
    terms,
    folder,
    payee,
    keyFile,
    withStore,
    acg: (...words) => shell.run(folder, words),
    async owe(as = 'refundDue', changes = {}, on = chain) {
      const terms = termsOn(on);
      // Each payer has a balance of its own, so that what came back to it is exact.
      const payer = accounts.get(changes.payer ?? '') ?? freshAccount();
      accounts.set(payer.address, payer);
      await on.mint(payer.address, PRICE_UNITS);
      const proof = await genuineProof(payer, terms);
      const transaction = await chainActors(on, terms).submit(proof);
      const { nonce, validBefore } = proof.payload.payload.authorization;
      const receiptId = paymentReceiptId(proof.payId, Number(validBefore), terms.maxTimeoutSeconds);
      const { asset, network } = terms;
      const payment = { payer: payer.address, payee: payee.address, asset, network, nonce, units: String(PRICE_UNITS) };
      const known = { payId: proof.payId, receiptId, currency: 'TUSD', validBefore: Number(validBefore), ...payment };
      const sale = { ...paymentTerms(randomUUID(), known), ...changes, transaction };
      sold.set(proof.payId, sale);
      await withStore((store) => leave(store, as, sale));
      return { payId: proof.payId, receiptId, payer: payer.address, transaction };
    },
    async forget({ payId, receiptId }, again = true) {
      const db = new DatabaseSync(path);
      const forgotten = db.prepare('DELETE FROM documents WHERE key = ?');
      for (const key of [`pay:${payId}`, `buy:${payId}`, `rcpt:${receiptId}`, `rcpt:of:${payId}`]) forgotten.run(key);
      db.prepare("DELETE FROM entries WHERE list LIKE 'rcpt:%' AND member LIKE ?").run(`%${receiptId}%`);
      db.close();
      const sale = sold.get(payId);
      if (again && sale !== undefined) await withStore((store) => leave(store, 'refundDue', sale));
    },
  };
}

type Sold = ReturnType<typeof paymentTerms> & Partial<PaymentRecord> & { readonly transaction: string };

/** Takes a payment through its states. */
async function leave({ ledger }: Store, as: 'refundDue' | 'undelivered', sold: Sold): Promise<void> {
  const { transaction, sending, state: _state, ...terms } = sold;
  let record = recordIn(await ledger.reserve({ terms, owner: randomUUID(), leaseMs: 60_000 }));
  const to = async (state: 'settling' | 'settled' | 'undelivered' | 'refundDue', more = {}): Promise<void> => {
    const receipt =
      state === 'settling'
        ? {}
        : {
            receipt: receiptOf(
              { ...record, transaction },
              {
                settledAt: new Date(record.settledAt ?? Date.now()),
                at: new Date(),
                durationMs: 0,
                delivery: undefined,
                refundDue: state === 'refundDue',
              },
            ),
          };
    const written = await ledger.advance({ ...move(record, state, more), ...fencingToken(record), ...receipt });
    if (written.kind !== 'done') throw new Error(written.kind);
    ({ record } = written);
  };
  await to('settling');
  await to('settled', { facts: { evidence: 'logs', transaction } });
  await to('undelivered', { leaseMs: 0, ...(sending === undefined ? {} : { facts: { sending } }) });
  if (as === 'refundDue') await to('refundDue', { leaseMs: 0 });
}
