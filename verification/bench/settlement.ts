/**
 * The suite of local settlement: payments that come at once, settled on a local chain by the
 * gateway and by the official facilitator, with instant blocks and with a block a second; what they
 * cost in calls of the node and in gas; and what bad payments do to good ones beside them.
 */

import { randomBytes } from 'node:crypto';
import { lowerHex, transferCall } from '../../src/payments/x402/evm/calldata.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Contestant, NotAvailable, type Question } from './contestant.ts';
import { pin } from './cores.ts';
import { groundFor, type Measured, type MeasuringParts } from './ground.ts';
import type { Load } from './load.ts';
import { median } from './numbers.ts';
import { gatewayLocal } from './peers/gateway.ts';
import { officialLocal } from './peers/installed.ts';
import { freshPayers, type Payer, signedProofs } from './proofs.ts';
import { meterRpc, type RpcMeter } from './rpc-meter.ts';
import type { Started } from './stage.ts';
import type { Measurement } from './verdict.ts';

/** Payments that come at once. */
const AT_ONCE = 100;
const INSTANT_ROUNDS = 6;
const BLOCK_ROUNDS = 4;
const REPLAY_ROUNDS = 8;
/** Payments of a round with bad ones among them. */
const GOOD = 9;
const BAD = 3;
const BLOCK_SECONDS = 1;
/** Longest wait for the answers of a round, seconds. */
const PATIENCE_SECONDS = 75;
const FUNDS_UNITS = 1_000_000_000_000n;
const MINTS_AT_ONCE = 20;

/**
 * What makes a payment bad. `spent`: another sender has used its authorization; `copied`: it is the
 * copy of a good one that comes at the same time.
 */
type BadKind = 'spent' | 'copied';

/** What one burst gave. */
interface Burst {
  /** Good payments that settled. */
  readonly good: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly calls: number;
  readonly gas: number;
}

/** One side of the comparison. */
interface Side {
  readonly started: Started;
  readonly meter: RpcMeter;
  readonly question: Question;
}

/** Rows whose ids begin with `settle`. @throws Error when the gateway settles nothing */
export async function measureSettlement(parts: MeasuringParts): Promise<Measured> {
  const { signal, tell } = parts;
  await using ends = new AsyncDisposableStack();
  const { stage, load, cores } = await groundFor(ends, parts);
  const chain = await startChain();
  ends.defer(() => chain.stop());
  pin(cores.others, chain.pid);
  const start = async (contestant: (chain: Chain, rpcUrl: string) => Contestant): Promise<Side> => {
    const meter = await meterRpc(chain.rpcUrl);
    ends.defer(() => meter.stop());
    const started = await stage.start(contestant(chain, meter.url));
    return { started, meter, question: started.contestant.question };
  };
  const own = await start(gatewayLocal);
  let missing: string | undefined;
  const official = await start(officialLocal).catch((error: unknown) => {
    if (!(error instanceof NotAvailable)) throw error;
    missing = error.message;
    return undefined;
  });
  const payers = freshPayers(AT_ONCE);
  tell(`giving ${AT_ONCE} payers their tokens`);
  for (let at = 0; at < payers.length; at += MINTS_AT_ONCE)
    await Promise.all(payers.slice(at, at + MINTS_AT_ONCE).map(({ address }) => chain.mint(address, FUNDS_UNITS)));
  const world: World = { chain, payers, load, signal };

  tell('warming up');
  for (let round = 0; round < 2; round += 1)
    for (const side of [own, official]) if (side !== undefined) await burst(world, side, AT_ONCE);
  // One payment that comes alone is one plain transfer.
  const alone = await burst(world, own, 1);

  const instant = await rounds('instant blocks', INSTANT_ROUNDS, world, [own, official], tell);
  const spent = await mixedRounds(world, own, 'spent', tell);
  const copied = await mixedRounds(world, own, 'copied', tell);
  await chain.request('evm_setAutomine', [false]);
  await chain.request('evm_setIntervalMining', [BLOCK_SECONDS]);
  const blocks = await rounds(`blocks of ${BLOCK_SECONDS} s`, BLOCK_ROUNDS, world, [own, official], tell);

  const against = (values: readonly number[]): Measurement => (missing === undefined ? { values } : { missing });
  return new Map<string, Measurement>([
    ['settle-instant', against(rateRatios(instant))],
    ['settle-blocks', against(rateRatios(blocks))],
    ['settle-all', { values: [...instant.own, ...blocks.own].map(({ good }) => good) }],
    ['settle-p50', { values: blocks.own.map(({ p50Ms }) => p50Ms) }],
    ['settle-rpc', { values: instant.own.map(({ calls, good }) => calls / good) }],
    ['settle-gas', { values: instant.own.map(({ gas, good }) => gas / good / alone.gas) }],
    ['settle-spent', { values: spent.good }],
    ['settle-spent-kept', { values: spent.kept }],
    ['settle-copied', { values: copied.good }],
    ['settle-copied-kept', { values: copied.kept }],
  ]);
}

interface World {
  readonly chain: Chain;
  readonly payers: readonly Payer[];
  readonly load: Load;
  readonly signal: AbortSignal;
}

interface Rounds {
  readonly own: readonly Burst[];
  readonly official: readonly Burst[];
}

function rateRatios({ own, official }: Rounds): readonly number[] {
  return own.flatMap((one, round) => {
    const other = official[round];
    return other === undefined ? [] : [one.good / one.seconds / (other.good / other.seconds)];
  });
}

async function rounds(
  what: string,
  count: number,
  world: World,
  [own, official]: readonly [Side, Side | undefined],
  tell: (line: string) => void,
): Promise<Rounds> {
  const taken: { own: Burst[]; official: Burst[] } = { own: [], official: [] };
  for (let round = 0; round < count; round += 1) {
    const order = [
      ['own', own],
      ['official', official],
    ] as const;
    for (const [name, side] of round % 2 === 0 ? order : order.toReversed())
      if (side !== undefined) taken[name].push(await burst(world, side, AT_ONCE));
    const told = Object.entries(taken).map(([name, bursts]) => {
      const last = bursts.at(-1);
      return last === undefined ? `${name} -` : `${name} ${said(last)}`;
    });
    tell(`${what}, round ${round + 1} of ${count}: ${told.join('; ')}`);
  }
  return taken;
}

function said({ good, seconds, p50Ms, calls, gas }: Burst): string {
  const each = `${(calls / good).toFixed(1)} calls and ${(gas / good).toFixed(0)} gas each`;
  return `${good} in ${seconds.toFixed(2)} s, p50 ${p50Ms.toFixed(0)} ms, ${each}`;
}

/**
 * Rounds of good payments alone, and of as many with bad ones among them, in turn: how many good
 * ones settle, and the share of the payments a second that is kept.
 */
async function mixedRounds(
  world: World,
  side: Side,
  kind: BadKind,
  tell: (line: string) => void,
): Promise<{ readonly good: readonly number[]; readonly kept: readonly number[] }> {
  const good: number[] = [];
  const kept: number[] = [];
  for (let round = 0; round < REPLAY_ROUNDS; round += 1) {
    const plain = await burst(world, side, GOOD);
    const mixed = await burst(world, side, GOOD, { kind, count: BAD });
    good.push(mixed.good);
    kept.push(mixed.good / mixed.seconds / (plain.good / plain.seconds));
  }
  tell(`${BAD} ${kind} among ${GOOD + BAD}: ${median(good)} good ones settle at ${side.started.contestant.id}`);
  return { good, kept };
}

/** Sends `count` good payments at once, with bad ones spread among them. */
async function burst(
  world: World,
  side: Side,
  count: number,
  bad: { readonly kind: BadKind; readonly count: number } = { kind: 'spent', count: 0 },
): Promise<Burst> {
  const { chain, payers, load, signal } = world;
  const { started, question, meter } = side;
  const signed = await signedProofs(started.origin, question, payers, count + bad.count);
  const good = signed.slice(0, count);
  const worthless = bad.kind === 'copied' ? good.slice(0, bad.count) : signed.slice(count);
  if (bad.kind === 'spent') for (const proof of worthless) await spend(chain, proof);
  const proofs = [...worthless, ...good];
  const [calls, block] = [meter.calls(), await blockNumber(chain)];
  const report = await load.fire(
    { origin: started.origin, question, seconds: PATIENCE_SECONDS, connections: proofs.length, proofs },
    signal,
  );
  const settled = new Set(report.settled.map((at) => proofs[at]));
  return {
    good: good.filter((proof) => settled.has(proof)).length,
    seconds: report.elapsedMs / 1_000,
    p50Ms: report.p50Ms,
    calls: meter.calls() - calls,
    gas: await gasSince(chain, block),
  };
}

/** The signed part of a proof. */
interface Signed {
  readonly payload: {
    readonly signature: `0x${string}`;
    readonly authorization: Readonly<Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>>;
  };
}

/** Uses the authorization of a proof on the chain. */
async function spend(chain: Chain, proof: string): Promise<void> {
  const { payload } = JSON.parse(Buffer.from(proof, 'base64').toString()) as Signed;
  const sender = `0x${randomBytes(20).toString('hex')}`;
  await chain.fundGas(sender);
  await chain.send(
    sender,
    chain.token.address,
    lowerHex(transferCall(payload.authorization, payload.signature, 'account')),
  );
}

async function blockNumber(chain: Chain): Promise<number> {
  return Number(await chain.request('eth_blockNumber', []));
}

/** Gas of all blocks after `block`. */
async function gasSince(chain: Chain, block: number): Promise<number> {
  const last = await blockNumber(chain);
  const numbers = Array.from({ length: last - block }, (_, at) => block + 1 + at);
  const blocks = await Promise.all(
    numbers.map((number) => chain.request('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])),
  );
  return blocks.reduce<number>((sum, one) => sum + Number((one as { readonly gasUsed: string }).gasUsed), 0);
}
