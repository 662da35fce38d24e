import { Counter, type Registry } from 'prom-client';
import type { Advance, PaymentLedger, PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { PaymentRail } from '../../payments/x402/wire/rail.ts';
import type { Durations } from './durations.ts';
import { type PricedIn, revenueMetric } from './revenue.ts';
import { stopwatch } from './stopwatch.ts';
import { UNDELIVERED_CAUSES, undeliveredCause } from './undelivered-cause.ts';

/** Watches what moves money: the ledger and the rail as they are, but for what is counted and timed. */
export interface PaymentMetrics {
  ledger(ledger: PaymentLedger): PaymentLedger;
  rail<Rail extends PaymentRail>(rail: Rail): Rail;
}

/** `sold`: whether a resource is in the catalogue; a record may be older than it. `offers`: what its paid ones are paid in. */
export function paymentMetrics(
  registry: Registry,
  durations: Durations,
  sold: (resourceId: string) => boolean,
  offers: PricedIn,
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
      'Attempts of this process to deliver what was paid that failed. merchant: look at his service; gateway: look at this ' +
      'process; client_gone: the buyer was not there to take it. The same proof collects for 24 hours, then a refund is due.',
    labelNames: ['cause'] as const,
    registers,
  });
  // An alert on the growth of one of them needs the zero.
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
    time: 'Time of the reads and writes around payments, to the answer of the store.',
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
    if (state === 'withdrawn') withdrawn.inc();
  };
  return {
    ledger(ledger) {
      const advance = timedLedger('advance', (command: Advance) => ledger.advance(command));
      return {
        reserve: timedLedger('reserve', (command) => ledger.reserve(command)),
        async advance(command) {
          const advanced = await advance(command);
          if (advanced.kind === 'done') moved(advanced.record, command);
          return advanced;
        },
        note: timedLedger('note', (command) => ledger.note(command)),
        renew: timedLedger('renew', (claim, leaseMs) => ledger.renew(claim, leaseMs)),
        discard: timedLedger('discard', (...discard) => ledger.discard(...discard)),
        read: timedLedger('read', (payId) => ledger.read(payId)),
        kept: timedLedger('kept', (payId) => ledger.kept(payId)),
        due: timedLedger('due', (limit) => ledger.due(limit)),
      };
    },
    rail: (rail) => ({
      ...rail,
      verify: timedRail('verify', (proof, offer) => rail.verify(proof, offer)),
      settle: timedRail('settle', (...asked: Parameters<PaymentRail['settle']>) => rail.settle(...asked)),
      reconcile: timedRail('reconcile', (...asked: Parameters<PaymentRail['reconcile']>) => rail.reconcile(...asked)),
    }),
  };
}
