/** Judges a simulated run once it is quiet. */

import { isFinal } from '../../../src/payments/ledger/transitions.ts';
import { MOST_SENDINGS } from '../../../src/payments/settlement/retry-policy.ts';
import type { BuyerPlan, Ending, Purchase } from './buyer.ts';
import { requestIdOf } from './gateway.ts';
import type { HeldRecord } from './store.ts';
import type { World } from './world.ts';

/** What must be true once a run is quiet; each compares the ledgers of chain, store and backend. */
export const judge = { quiet, buyers, end, undecidable };

/**
 * No faults any more, all leases and authorizations are over: no payment may be undecided, no
 * reservation left.
 */
function quiet(world: World): void {
  for (const record of world.store.records.values()) {
    if (isUnknowable(world, record)) continue;
    const { state } = record;
    if (state === 'reserved' || state === 'worked' || state === 'settling' || state === 'settled')
      world.laws.broken(`left open as ${state}`);
  }
}

/**
 * Whether a payment can never be decided: the reconciler asks about it for ever, so a run cannot
 * wait for its end.
 */
function undecidable(world: World): boolean {
  return [...world.store.records.values()].some((record) => isUnknowable(world, record));
}

/** Without a chain nothing shows what became of an authorization that no facilitator claims. */
function isUnknowable({ setting }: World, { state }: Pick<HeldRecord, 'state'>): boolean {
  return setting.rail === 'blind' && state === 'settling';
}

/** After the late retries every buyer that paid has the answer, or the reason why not. */
function buyers(world: World, all: readonly BuyerPlan[], endings: readonly Ending[]): void {
  const { chain, laws, setting, store } = world;
  all.forEach((buyer, index) => {
    const ending = endings[index] ?? 'open';
    if (!buyer.mayPay || ending === 'answered') return;
    const paid = buyer.purchase.proofs.filter(({ nonce }) => chain.paid(nonce));
    const verdict = `${buyer.name} ends ${ending}, having paid ${paid.length} times`;
    switch (ending) {
      case 'delivered':
        if (!paid.some(({ payId }) => laws.handedOut(payId))) laws.broken(`${verdict}; nothing was handed out`);
        return;
      case 'undelivered':
        // Bytes of its answers may have left as often as any may.
        if (paid.some(({ payId }) => (store.records.get(payId)?.sendings ?? 0) >= MOST_SENDINGS)) return;
        if (setting.method === 'GET' && !othersPaid(all, buyer)) laws.broken(`${verdict}; it can be repeated`);
        return;
      case 'used':
      case 'conflict':
        if (!othersPaid(all, buyer)) laws.broken(verdict);
        return;
      case 'open': {
        const { proof } = buyer.purchase;
        const record = store.records.get(proof.payId);
        if (record !== undefined && isUnknowable(world, record)) return;
        const guarded = record?.keyDigest !== undefined && buyer.key === undefined;
        if (!guarded) laws.broken(verdict);
        return;
      }
      default:
        laws.broken(verdict);
    }
  });
}

/** Whether another buyer sent the same proof, with another input or another key. */
function othersPaid(all: readonly BuyerPlan[], buyer: BuyerPlan): boolean {
  return all.some(
    ({ purchase, input, key }) => purchase === buyer.purchase && (input !== buyer.input || key !== buyer.key),
  );
}

/** A day later: nothing is open, and the three ledgers agree. */
function end(world: World, purchases: readonly Purchase[]): void {
  const { chain, laws, store } = world;
  for (const record of store.records.values())
    if (!isFinal(record.state) && !undecidable(world)) laws.broken(`open after a day: ${record.state}`);
  for (const { proofs } of purchases) {
    const paid = proofs.filter(({ nonce }) => chain.paid(nonce));
    const counted = paid.filter(({ nonce }) => !laws.excused.has(nonce));
    if (counted.length > 1) laws.broken(`one call paid ${counted.length} times`);
    for (const { payId } of paid) agree(world, payId);
  }
  const loose = world.flushed.filter(({ type }) => type === 'payment.settled');
  if (loose.length > 0) laws.broken('payment.settled written outside of its transition');
  countRequests(world);
  laws.final();
}

/**
 * Every request has one event, unless its process died; a silent store may have written one that is
 * then written again.
 */
function countRequests({ flushed, laws, served, store }: World): void {
  if (store.damaged.size > 0 || served.some(({ storeFaults }) => storeFaults > 0)) return;
  const times = new Map<string, number>();
  for (const { type, requestId } of [...flushed, ...store.events()])
    if (type === 'resource.requested') times.set(requestId, (times.get(requestId) ?? 0) + 1);
  served.forEach(({ alive }, index) => {
    const count = times.get(requestIdOf(index)) ?? 0;
    if (count > 1 || (alive && count === 0)) laws.broken(`${count} events for request ${index}`);
  });
}

function agree(world: World, payId: string): void {
  const { laws, setting, store } = world;
  const record = store.records.get(payId);
  const { requests, executions } = world.workOf(payId);
  if (setting.honoursKeys && executions > 1) laws.broken(`the backend did the work ${executions} times`);
  const bought = world.answerBought(payId);
  if (record?.state === 'delivered' && executions === 0 && !bought)
    laws.broken('delivered, and the backend did nothing');
  // What the store lost may be sent again, with a second event: the gateway accepts that, so that
  // it does not charge again.
  if (store.damaged.has(payId)) return;
  if (record === undefined) {
    laws.broken('paid, and there is no record');
    return;
  }
  if (isUnknowable(world, record)) return;
  if (setting.settle === 'after' && record.recovered === undefined && executions === 0 && !bought)
    laws.broken('paid for an answer that the backend did not give');
  // Before the money moves a request may be repeated: its operation does no harm unpaid.
  if (setting.method === 'POST' && setting.settle === 'before' && requests > 1)
    laws.broken(`a request that must not be repeated was sent ${requests} times`);
  const count = store.events(payId).filter(({ type }) => type === 'payment.settled').length;
  if (count !== 1) laws.broken(`${count} events payment.settled`);
}
