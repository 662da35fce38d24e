/** Counts payments and their money, times the ledger and the rail, and shows the rail's state. */

import { Counter, type Registry } from '@prometheus-io/client';
import type { Advance, PaymentLedger, PaymentRecord } from '../../payments/ledger/ledger.ts';
import { CHAIN_FAULTS, type NetworkFacts } from '../../payments/rail.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../../payments/x402/wire/types.ts';
import { type Durations, stopwatch, type Timed } from './durations.ts';
import type { Metrics, Reading } from './metrics.ts';

/**
 * Why a paid call was not delivered. `merchant`: the backend failed. `client_gone`: the backend
 * answered and the buyer had left. `gateway`: a death, a drain, no memory or a bug of the gateway.
 */
export const UNDELIVERED_CAUSES = ['merchant', 'client_gone', 'gateway'] as const;
type UndeliveredCause = (typeof UNDELIVERED_CAUSES)[number];

/** The cause of a write that ends in `undelivered`, from its receipt and events (contract 6). */
export function undeliveredCause({ receipt, events }: Pick<Advance, 'receipt' | 'events'>): UndeliveredCause {
  const code = receipt?.metadata?.backendErrorCode;
  // Without a code nothing failed: the redelivery fetched the answer, which waits for the buyer.
  if (code === undefined || code === 'client_gone') return 'client_gone';
  // An attempt that died has no failure event; the end of the process aborts others.
  const failed = events.some(({ type }) => type === 'backend.failed');
  return failed && code !== 'aborted' ? 'merchant' : 'gateway';
}

/** A token on a chain, as the offers name it. */
type Money = Pick<PaymentRecord, 'network' | 'asset'>;

/** The token that each paid resource is paid in, by resource id. */
export type PricedIn = ReadonlyMap<string, { readonly requirements: Money }>;

/**
 * Counts the money of settled payments. Resources come from the catalogue, networks and assets from
 * the offers: no caller can make a new time series. Sums are bigints and become doubles only in a
 * scrape: a large double would lose small amounts.
 */
function revenueMetric(
  registry: Registry,
  offers: () => PricedIn,
): (payment: Money & Pick<PaymentRecord, 'resourceId' | 'units' | 'recovered'>) => void {
  const sums = new Map<string, { readonly labels: Money & { readonly resource: string }; units: bigint }>();
  const sumOf = (resource: string, { network, asset }: Money): { units: bigint } => {
    const key = `${network} ${asset} ${resource}`;
    const sum = sums.get(key) ?? { labels: { resource, network, asset }, units: 0n };
    sums.set(key, sum);
    return sum;
  };
  new Counter({
    name: 'acg_settled_units_total',
    help:
      'Money that this process took, in atomic units of the asset (1 USDC is 1,000,000). What was found again on the chain after ' +
      'the store had lost it is left out. Above 2^53 a sample is the nearest double: the books are the receipts.',
    labelNames: ['resource', 'network', 'asset'] as const,
    registers: [registry],
    collect() {
      this.reset();
      // From 0, or the first payment of each resource would be no growth.
      for (const [resource, { requirements }] of offers()) sumOf(resource, requirements);
      for (const { labels, units } of sums.values()) this.inc(labels, Number(units));
    },
  });
  return function settled(payment) {
    if (payment.recovered !== undefined) return;
    const resource = offers().has(payment.resourceId) ? payment.resourceId : '';
    sumOf(resource, payment).units += BigInt(payment.units);
  };
}

/** Wraps the ledger and the rail, to count and time them. */
export interface PaymentMetrics {
  ledger(ledger: PaymentLedger): PaymentLedger;
  rail<Rail extends PaymentRail>(rail: Rail): Rail;
}

/** `sold`: whether a resource is in the catalogue, which may be newer than a record. */
export function paymentMetrics(
  registry: Registry,
  durations: Durations,
  sold: (resourceId: string) => boolean,
  offers: () => PricedIn,
): PaymentMetrics {
  const registers = [registry];
  const payments = new Counter({
    name: 'acg_payments_total',
    help:
      'Payments that this process moved to a state. settled over acg_calls_total{outcome="payment_required"} is the ' +
      'conversion of challenges.',
    labelNames: ['resource', 'channel', 'state'] as const,
    registers,
  });
  const undelivered = new Counter({
    name: 'acg_paid_undelivered_total',
    help:
      'Attempts of this process to deliver what was paid that failed. merchant: look at the backend; gateway: look at this ' +
      'process; client_gone: the buyer had left. The same proof collects for 24 hours, then a refund is due.',
    labelNames: ['cause'] as const,
    registers,
  });
  // An alert on the growth of a label needs the zero.
  for (const cause of UNDELIVERED_CAUSES) undelivered.inc({ cause }, 0);
  const refundDue = new Counter({
    name: 'acg_refund_due_total',
    help:
      'Payments whose 24 hours went by without a delivery, as this process closed them; what was sent back since is not known here. ' +
      'Refund them: GET /api/receipts?delivered=false lists them.',
    registers,
  });
  const unresolved = new Counter({
    name: 'acg_payments_unresolved_total',
    help:
      'Settlements of which nothing could tell for a day whether they were paid, as this process closed them. ' +
      'GET /api/receipts?uncertain=payment lists them; acg reconcile --decide ends each.',
    registers,
  });
  const withdrawn = new Counter({
    name: 'acg_payments_withdrawn_total',
    help:
      'Settlements that this process began and gave up because no node took their transaction: the relayer could not pay the gas. ' +
      'Nothing was charged; the same proof begins anew.',
    registers,
  });
  const earned = revenueMetric(registry, offers);
  const timedLedger = stopwatch(registry, durations, 'acg_ledger', {
    time:
      'Time of the reads and writes around payments, to the answer of the store. ' +
      'deliver: the last write of a paid call, which no caller waits for and which may wait for others up to 10 ms.',
    failures: 'Questions to the ledger that the store did not answer. See health in the log for what is wrong with it.',
  });
  const timedRail = stopwatch(registry, durations, 'acg_rail', {
    time: 'Time of the facilitator or the chain: verify, before any money moves; settle; reconcile, to find out what happened.',
    failures: 'Questions to the rail that ended in a fault of our own; a facilitator that is away is a verdict.',
  });

  const moved = (record: PaymentRecord, command: Advance): void => {
    const { resourceId, channel } = record;
    const state = command.to;
    payments.inc({ resource: sold(resourceId) ? resourceId : '', channel, state });
    if (state === 'settled') earned(record);
    if (state === 'undelivered') undelivered.inc({ cause: undeliveredCause(command) });
    if (state === 'refundDue') refundDue.inc();
    if (state === 'unresolved') unresolved.inc();
    if (state === 'withdrawn' && command.facts?.reason === 'relayer_unfunded') withdrawn.inc();
  };
  return {
    ledger(ledger) {
      const advance = timedLedger('advance', (command: Advance) => ledger.advance(command));
      const deliver = timedLedger('deliver', (command: Advance) => ledger.advance(command));
      return {
        reserve: timedLedger('reserve', (command) => ledger.reserve(command)),
        async advance(command) {
          const advanced = await (command.to === 'delivered' ? deliver : advance)(command);
          if (advanced.kind === 'done') moved(advanced.record, command);
          return advanced;
        },
        note: timedLedger('note', (command) => ledger.note(command)),
        renew: timedLedger('renew', (claim, leaseMs) => ledger.renew(claim, leaseMs)),
        discard: timedLedger('discard', (...discard) => ledger.discard(...discard)),
        read: timedLedger('read', (payId) => ledger.read(payId)),
        kept: timedLedger('kept', (payId) => ledger.kept(payId)),
        unpaid: timedLedger('unpaid', (limit) => ledger.unpaid(limit)),
        due: timedLedger('due', (...asked) => ledger.due(...asked)),
      };
    },
    rail(rail) {
      const timed = timedPerNetwork(timedRail, rail.perNetwork);
      return {
        ...rail,
        verify: timed('verify', (...asked: Parameters<PaymentRail['verify']>) => rail.verify(...asked)),
        settle: timed('settle', (...asked: Parameters<PaymentRail['settle']>) => rail.settle(...asked)),
        reconcile: timed('reconcile', (...asked: Parameters<PaymentRail['reconcile']>) => rail.reconcile(...asked)),
      };
    },
  };
}

/** Times the questions to each network apart, where there are several. */
function timedPerNetwork(timed: Timed, perNetwork: PaymentRail['perNetwork']): TimedQuestion {
  if (perNetwork === undefined) return timed;
  return (operation, ask) => {
    const asks = new Map(perNetwork.map(({ network }) => [network, timed(operation, ask, network)]));
    // A payment of another network is asked nowhere.
    return (...asked) => (asks.get(asked[1].network) ?? ask)(...asked);
  };
}

type TimedQuestion = <Asked extends readonly [Proof, PaymentRequirements, ...unknown[]], Answer>(
  operation: string,
  ask: (...asked: Asked) => Promise<Answer>,
) => (...asked: Asked) => Promise<Answer>;

/**
 * Shows the gauges that this rail has. With several networks each value has the label `network`;
 * entries of one network show the worst of their values.
 */
export function showRail(
  { gauge }: Pick<Metrics, 'gauge'>,
  { perNetwork, ...only }: NetworkFacts & Pick<PaymentRail, 'perNetwork'>,
): void {
  const networks = Map.groupBy(perNetwork ?? [{ network: '', ...only }], ({ network }) => network);
  const labels = perNetwork === undefined ? [] : ['network'];
  /** The readings of each network. */
  const each = (read: (facts: readonly NetworkFacts[]) => readonly Reading[]) => (): readonly Reading[] =>
    [...networks].flatMap(([network, facts]) =>
      read(facts).map(([more, value]): Reading => [perNetwork === undefined ? more : { network, ...more }, value]),
    );
  const all = [...networks.values()].flat();
  if (all.some(({ transfersLeft }) => transfersLeft !== undefined))
    gauge({
      name: 'acg_relayer_transfers_left',
      help:
        'Payments that the gas of the relayer lasts for, at the most that each may cost now. At 0 paid calls are refused before any ' +
        'money moves (503 GATEWAY_BUSY, relayer_unfunded): send gas to its address.',
      labels,
      read: each((facts) => worst(Math.min, facts, ({ transfersLeft }) => transfersLeft?.())),
    });
  if (!all.some(({ chainState }) => chainState !== undefined)) return;
  gauge({
    name: 'acg_chain_fault',
    help:
      'What is wrong with the chain node of payments.x402.rpcUrl, 0 or 1. stall: no new block; clock: the clock of this machine is not ' +
      'that of the blocks; missing: transactions without their logs. Paid calls are refused before any money moves (503).',
    labels: [...labels, 'cause'],
    read: each((facts) => {
      const states = facts.flatMap(({ chainState }) => (chainState === undefined ? [] : [chainState()]));
      if (states.length === 0) return [];
      const isFaulty = (cause: string): boolean =>
        states.some(({ faults }) => faults.some(({ kind }) => kind === cause));
      return CHAIN_FAULTS.map((cause) => [{ cause }, isFaulty(cause) ? 1 : 0]);
    }),
  });
  gauge({
    name: 'acg_chain_head_age_seconds',
    help: 'Since the chain node first showed its newest block. It also grows while a chain that makes blocks on demand is idle.',
    labels,
    read: each((facts) =>
      worst(Math.max, facts, ({ chainState }) => {
        const ageMs = chainState?.().headAgeMs;
        return ageMs === undefined ? undefined : ageMs / 1_000;
      }),
    ),
  });
}

/** The worst of the known values; none where none is known. */
function worst(
  of: (...values: number[]) => number,
  facts: readonly NetworkFacts[],
  read: (facts: NetworkFacts) => number | undefined,
): readonly Reading[] {
  const known = facts.map(read).filter((value) => value !== undefined);
  return known.length === 0 ? [] : [[{}, of(...known)]];
}
