/**
 * Refunds under everything that can go wrong while they are sent: operators who are killed, two of
 * them at once, a node that restarts and loses requests and replies, and a store that is lost.
 */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PRICE_UNITS } from '../../spec/payments/x402/signing.ts';
import { COMPILE_CACHE } from '../../spec/support/compile-cache.ts';
import { type HttpExchange, serveHttp } from '../../spec/support/http-server.ts';
import { programFile } from '../../spec/support/program.ts';
import { type Owed, openRefundShop, type RefundShop } from '../../spec/tools/refunds/shop.ts';
import { refundNonce } from '../../src/payments/x402/refund/transfer.ts';
import { startAnvil } from '../../tools/local-world/anvil.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';

const ACG = programFile('tools/acg.ts');
/** When an operator is killed, milliseconds after its first refund. */
const KILLED_WITHIN_MS = 600;
/** Operators that are killed before the last ones may finish, and most pairs of them, a refund. */
const PER_REFUND = { kills: 0.3, rounds: 0.75 } as const;
/** The node restarts under every so many pairs. */
const ROUNDS_PER_RESTART = 3;
/** Most commands after them. */
const TRIES = 10;

/** What a run came to. */
interface RefundRun {
  readonly refunds: number;
  readonly kills: number;
  readonly lostRequests: number;
  readonly lostReplies: number;
  readonly restarts: number;
  /** Transactions without a block when the node restarted. */
  readonly forgottenTransactions: number;
  /** Records that the store lost. */
  readonly forgotten: number;
  /** What must be empty. */
  readonly violations: readonly string[];
}

/** @param refunds how many are due; a tenth as many sales of another shop have the same payee */
export async function runRefunds(refunds: number, random: () => number = Math.random): Promise<RefundRun> {
  await using ends = new AsyncDisposableStack();
  const node = await startFrailNode(ends, random);
  const shop = await openRefundShop(ends, { chain: node.chain, nodeFor: async () => node.url });
  const enough = Math.ceil(refunds * PER_REFUND.kills);
  const foreign = await owe(shop, Math.ceil(refunds / 10));
  for (const one of foreign) await shop.forget(one, false);
  const owed = await owe(shop, refunds);
  const before = await shop.chain.balanceOf(shop.payee.address);

  let kills = 0;
  let forgotten = 0;
  for (let rounds = 1; rounds <= refunds * PER_REFUND.rounds && kills < enough; rounds += 1) {
    const both = Promise.all([operator(shop, random), operator(shop, random)]);
    if (rounds % ROUNDS_PER_RESTART === 0) await node.restart(both);
    const ended = await both;
    kills += ended.filter((end) => end === 'killed').length;
    if (ended.includes('done') && forgotten > 0) break;
    if (forgotten === 0 && (kills >= enough / 2 || ended.includes('done'))) {
      // Every second record is lost, and its buyer comes again in vain.
      for (const one of owed.filter((_, index) => index % 2 === 0)) await shop.forget(one);
      forgotten = Math.ceil(owed.length / 2);
    }
  }
  await finish(shop, node);
  return { refunds, kills, ...node.counts, forgotten, violations: await judged(shop, owed, foreign, before) };
}

/** The node goes on losing requests and restarting; what is not sent by then is a violation. */
async function finish(shop: RefundShop, node: FrailNode): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const run = shop.acg('refunds', 'pay', '--all-due', '--yes', '--key-file', shop.keyFile);
    await node.restart(run);
    if ((await run).code === 0) return;
  }
}

async function owe(shop: RefundShop, count: number): Promise<readonly Owed[]> {
  const owed: Owed[] = [];
  for (let made = 0; made < count; made += 1) owed.push(await shop.owe());
  return owed;
}

/** One command that is killed while it sends, or that ends by itself before. */
async function operator(shop: RefundShop, random: () => number): Promise<'killed' | 'done' | 'failed'> {
  const words = ['refunds', 'pay', '--all-due', '--yes', '--key-file', shop.keyFile];
  const child = spawn(process.execPath, [ACG, ...words], {
    cwd: shop.folder,
    env: { ...COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  leash(child);
  child.stdout.once('data', () => setTimeout(() => child.kill('SIGKILL'), random() * KILLED_WITHIN_MS).unref());
  const [code, signal] = await new Promise<readonly [number | null, string | null]>((resolve) =>
    child.once('exit', (...end) => resolve(end)),
  );
  if (signal !== null) return 'killed';
  return code === 0 ? 'done' : 'failed';
}

async function judged(
  shop: RefundShop,
  owed: readonly Owed[],
  foreign: readonly Owed[],
  before: bigint,
): Promise<readonly string[]> {
  const violations: string[] = [];
  const { chain, payee } = shop;
  for (const { payId, payer } of owed) {
    const balance = await chain.balanceOf(payer);
    if (balance !== PRICE_UNITS) violations.push(`${payer} has ${balance} of ${PRICE_UNITS}`);
    const [receipt] = await shop.withStore(
      async ({ receipts }) => (await receipts.page({ limit: 2, payment: payId })).receipts,
    );
    if (receipt?.refund?.status !== 'refunded') violations.push(`${payId} is ${receipt?.refund?.status}`);
    const nonce = refundNonce(payId);
    const logs = (await chain.request('eth_getLogs', [
      { address: chain.token.address, fromBlock: '0x0', topics: [null, null, nonce] },
    ])) as readonly { readonly transactionHash: string }[];
    if (logs.length !== 1) violations.push(`${payId} was sent back ${logs.length} times`);
    else if (logs[0]?.transactionHash !== receipt?.refund?.transaction)
      violations.push(
        `${payId}: the receipt names ${receipt?.refund?.transaction}, the chain ${logs[0]?.transactionHash}`,
      );
  }
  for (const { payer } of foreign)
    if ((await chain.balanceOf(payer)) !== 0n) violations.push(`${payer} of another shop was paid`);
  const spent = before - (await chain.balanceOf(payee.address));
  if (spent !== BigInt(owed.length) * PRICE_UNITS) violations.push(`the payee spent ${spent}`);
  return violations;
}

/** Of the requests. */
const LOST = { request: 0.02, reply: 0.03 } as const;
/** How long the port refuses connections in a restart, milliseconds. */
const DOWN_MS = 2_000;
/** Between looks at the transactions that wait, milliseconds. */
const POLL_MS = 20;

interface FrailNode {
  /** Loses nothing, for the run itself. */
  readonly chain: Chain;
  /** Loses what the commands send and what they are answered. */
  readonly url: string;
  readonly counts: FrailCounts;
  /**
   * Restarts the node as soon as a transaction waits for a block, which is forgotten. Does nothing
   * when `over` ends before.
   */
  restart(over: Promise<unknown>): Promise<void>;
}

/** What happened so far. */
interface FrailCounts {
  lostRequests: number;
  lostReplies: number;
  restarts: number;
  /** Transactions that a restart has forgotten. */
  forgottenTransactions: number;
}

async function startFrailNode(ends: AsyncDisposableStack, random: () => number): Promise<FrailNode> {
  const state = join(await temporaryDirectory(ends, 'acg-chain-'), 'chain.json');
  const chain = await startChain(0, state);
  let anvil: Awaited<ReturnType<typeof startAnvil>> = chain;
  ends.defer(() => anvil.stop());
  const counts = { lostRequests: 0, lostReplies: 0, restarts: 0, forgottenTransactions: 0 };
  const answer = async ({ request, response, body }: HttpExchange): Promise<void> => {
    const chance = random();
    if (chance < LOST.request) {
      counts.lostRequests += 1;
      request.socket.destroy();
      return;
    }
    const reply = await fetch(chain.rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const text = await reply.text();
    if (chance < LOST.request + LOST.reply) {
      counts.lostReplies += 1;
      request.socket.destroy();
      return;
    }
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(text);
  };
  let server = await serveHttp(answer);
  ends.defer(() => server.stop());
  const { url } = server;
  const waiting = async (): Promise<number> =>
    Number(((await chain.request('txpool_status', [])) as { readonly pending: string }).pending);

  return {
    chain,
    url,
    counts,
    async restart(over) {
      let isOver = false;
      void over.then(() => {
        isOver = true;
      });
      await chain.request('evm_setAutomine', [false]);
      while (!isOver && (await waiting()) === 0) await delay(POLL_MS);
      if (isOver) {
        await chain.request('evm_setAutomine', [true]);
        return;
      }
      await server.stop();
      counts.forgottenTransactions += await waiting();
      await anvil.stop();
      if ((await anvil.ended).signal !== null) throw new Error('the node ended before it had kept its blocks');
      counts.restarts += 1;
      await delay(DOWN_MS);
      anvil = await startAnvil(Number(new URL(chain.rpcUrl).port), state);
      server = await serveHttp(answer, Number(new URL(url).port));
    },
  };
}
