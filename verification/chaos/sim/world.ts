/** The simulated world: one chain, one store, one backend, two gateways. */

import type { EventDraft } from '../../../src/events/event.ts';
import { backendIdempotencyKey, keyDigest, tokenDigest } from '../../../src/payments/settlement/terms.ts';
import { answerNamed, type BuyerPlan, resourceOf, type SignedProof } from './buyer.ts';
import { type Fate, isPoint, type PointFault } from './fate.ts';
import { createSimGateway, Process, pathOf, requestIdOf, type SimGateway } from './gateway.ts';
import { type Attempt, Laws, secretOf } from './laws.ts';
import { Mandates } from './mandate.ts';
import { Connection, connectionWriter, type Reply, SimMerchant, type Work } from './merchant.ts';
import { createSimRail, Facilitator, type RailKind, SimChain } from './rail.ts';
import { type Conductor, nextOfManyImmediates, Schedule, type Step } from './schedule.ts';
import type { Mutant } from './seeds.ts';
import { type Change, ledgerPort, SimStore } from './store.ts';

/** One chain, one store, one backend, two gateways. */
export class World implements Conductor {
  readonly schedule: Schedule;
  readonly chain: SimChain;
  readonly store: SimStore;
  readonly laws: Laws;
  readonly merchant: SimMerchant;
  readonly setting: Setting;
  /** Events that no transition wrote. */
  readonly flushed: EventDraft[] = [];
  readonly #fate: Fate;
  readonly #mutant: Mutant;
  readonly #facilitator: Facilitator;
  readonly #pods: Pods;
  /** The attempt of each owner token. */
  readonly #holders = new Map<string, Process>();
  readonly #mandates: Mandates;
  readonly #connections = new Set<Connection>();
  /** Of a proof, the earlier one whose answer its 402 named. */
  readonly #answersOf = new Map<string, string>();
  /** Requests that reached a process, in order; the index makes the request id. */
  readonly served: Process[] = [];
  #lives = 0;

  constructor(setting: Setting, fate: Fate, mutant: Mutant, traced: boolean) {
    this.schedule = new Schedule(traced, nextOfManyImmediates);
    const now = (): number => this.schedule.now;
    this.setting = setting;
    this.#mandates = new Mandates(now, setting.mandated);
    this.#fate = fate;
    this.#mutant = mutant;
    this.chain = new SimChain(now);
    this.laws = new Laws(setting.settle, this.chain, now, (line) => this.schedule.log(line));
    const changed = (change: Change): void => {
      const { payId, before, after, by } = change;
      if (after !== undefined && after.owner !== before?.owner) this.#holders.set(after.owner, by);
      const isAnswered = after?.answered !== undefined && (after.state === 'worked' || after.state === 'settling');
      if (isAnswered && !this.store.isKept(payId) && !this.store.damaged.has(payId))
        this.laws.broken('answered, and no answer is kept');
      this.schedule.log(`  = ${after?.state ?? 'gone'} ${after?.reason ?? ''} ${after?.evidence ?? ''}`);
      this.laws.changed(change, this.store.damaged.has(payId));
      this.laws.mandates(this.store);
      if (this.#lostLiveLease(change)) this.laws.broken('an attempt that lives lost its lease');
    };
    // The clock of a real store counts whole milliseconds.
    this.store = new SimStore(() => Math.floor(this.schedule.now), changed);
    this.#facilitator = new Facilitator(this.chain, this.schedule, fate);
    this.merchant = new SimMerchant(setting.honoursKeys, fate, (key, by) => this.#asked(key, by));
    this.#pods = new Pods({
      schedule: this.schedule,
      start: (name) => this.#start(name),
      nextDueAt: () => this.store.nextDueAt(),
      roundMs: () => fate.roundMs(),
    });
  }

  signed({ nonce, payId, validBefore }: SignedProof): void {
    this.chain.signed(nonce, validBefore);
    this.laws.signed(payId, nonce);
  }

  /** Whether a payment may buy what the backend did for an earlier one. */
  answerBought(payId: string): boolean {
    const earlier = this.#answersOf.get(payId);
    return earlier !== undefined && (this.workOf(earlier).executions > 0 || this.answerBought(earlier));
  }

  /** What the backend did for a payment. */
  workOf(payId: string): Work {
    return this.merchant.work.get(backendIdempotencyKey(payId)) ?? { requests: 0, executions: 0 };
  }

  /** A buyer's timer. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.schedule.after(ms, { kind: 'world', label: 'buyer waits', actor: undefined, run: resolve });
    });
  }

  send(buyer: BuyerPlan, proof: SignedProof, number: number): Promise<Reply> {
    const gateway = this.#pods.at(number);
    const latency = (): number => this.#fate.latencyMs('http');
    const connection = new Connection(gateway.process, this.schedule, latency);
    if (!gateway.process.alive) {
      connection.cut();
      return connection.reply;
    }
    this.#connections.add(connection);
    const hangUp = { kind: 'world', label: `${buyer.name} hangs up`, actor: undefined } as const;
    this.schedule.after(this.#fate.patienceMs(), { ...hangUp, run: () => connection.hangUp() });
    const label = `request of ${buyer.name}`;
    const arrive = (): void => this.#arrive(gateway, connection, buyer, proof);
    this.schedule.after(latency(), { kind: 'wake', label, actor: gateway.process, run: arrive });
    void connection.reply.then((reply) => this.#mandates.answered(buyer, reply));
    return connection.reply.finally(() => this.#connections.delete(connection));
  }

  /** Every process runs, and there are no more faults. */
  endFaults(): void {
    this.#fate.endFaults();
    this.#pods.endFaults();
  }

  nextRound(): ReturnType<Pods['nextRound']> {
    return this.#pods.nextRound();
  }

  injectFault({ label, actor }: Step): void {
    const fault = isPoint(label) ? this.#fate.pointFault(label) : undefined;
    const gateway = [this.#pods.at(0), this.#pods.at(1)].find(({ process }) => process === actor);
    if (fault === undefined || gateway === undefined) return;
    this.schedule.log(`${gateway.process.name} FAULT ${JSON.stringify(fault)} before ${label}`);
    this.#hit(fault, gateway);
  }

  arrivesWithoutSender(): boolean {
    return this.#fate.leftAlready();
  }

  /**
   * Whether a lease ran out (it was not given up) although its process ran all the time and the
   * store answered all the time.
   */
  #lostLiveLease({ before, after, payId }: Change): boolean {
    if (before === undefined || after === undefined || before.owner === after.owner) return false;
    const process = this.#holders.get(before.owner);
    if (before.leaseUntil === 0 || process === undefined || this.store.damaged.has(payId)) return false;
    return process.alive && process.pausedUntil === 0 && process.storeFaults === 0;
  }

  /** What is kept is not asked for again, but by a process that stood still or could not ask. */
  #asked(key: string, by: Process): void {
    const record = [...this.store.records.values()].find(({ payId }) => backendIdempotencyKey(payId) === key);
    if (record === undefined || by.pausedUntil !== 0 || by.storeFaults > 0) return;
    // The store may have lost what was kept for it.
    if (this.store.damaged.has(record.payId)) return;
    if (this.#hasAnswer(record.payId)) this.laws.broken('the backend is asked again for an answer that is kept');
    const earlier = this.#answersOf.get(record.payId);
    const waiting = this.store.records.get(earlier ?? '');
    // A call with that proof for something else, or without its token, gets no answer of it.
    const isTheirs = record.tokenDigest !== undefined && waiting?.bind === record.bind;
    // Another payment for it may stand, of a process that has died meanwhile.
    const { bought = record.payId } = waiting ?? {};
    const isTaken = bought !== record.payId && this.store.records.has(bought);
    if (earlier !== undefined && isTheirs && !isTaken && record.settle === 'after' && this.#hasAnswer(earlier))
      this.laws.broken('the backend is asked again for an answer that waits');
  }

  #hasAnswer(payId: string): boolean {
    const isKept = this.store.records.get(payId)?.answered !== undefined && this.store.isKept(payId);
    return isKept && !this.store.damaged.has(payId);
  }

  #hit(fault: PointFault, gateway: SimGateway): void {
    const { process } = gateway;
    switch (fault.kind) {
      case 'crash':
        this.#pods.crash(gateway, this.#fate.restartMs());
        for (const connection of this.#connections) if (connection.process === process) connection.cut();
        return;
      case 'pause':
        process.pausedUntil = this.schedule.now + fault.ms;
        return;
      case 'lose':
        this.store.rollBack();
        return;
      case 'rollBack':
        this.store.rollBack(fault.ms);
        return;
      case 'spend':
        for (const payId of this.store.records.keys()) this.chain.spendElsewhere(this.laws.nonceOf(payId));
    }
  }

  #start(name: string): SimGateway {
    this.#lives += 1;
    const process = new Process(`${name}${this.#lives}`, this.schedule, this.#fate);
    const mutant = this.#mutant;
    const onBug = (thrown: unknown): void =>
      this.laws.broken(`a bug: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    const line = { mutant, clockErrorMs: this.#fate.clockErrorMs() };
    const { ledger, watched } = ledgerPort(process, this.store, line, onBug);
    const rail = createSimRail(process, this.setting.rail, this.#facilitator, this.#fate, this.chain);
    return createSimGateway({
      process,
      ledger: mutant.ledger?.(ledger) ?? ledger,
      watched,
      rail: mutant.rail?.(rail, this.chain) ?? rail,
      exchange: this.merchant.exchange(process),
      reserveBackend: this.merchant.reserve(process),
      resource: resourceOf(this.setting),
      settle: this.setting.settle,
      payToExclusive: this.setting.payToExclusive,
      sink: { push: (event) => void this.flushed.push(event), withdraw: () => [] },
      random: () => 0.5,
      warnings: { unwritten: () => undefined, unmarked: ({ payId }) => void this.laws.unmarked.add(payId) },
      onBug,
    });
  }

  #arrive({ serve }: SimGateway, connection: Connection, buyer: BuyerPlan, proof: SignedProof): void {
    const { payId, nonce, token } = proof;
    const answerOf = answerNamed(token);
    if (answerOf !== undefined && buyer.mayPay) this.#answersOf.set(payId, answerOf);
    const header = buyer.mayPay ? proof.header : proof.found;
    const { input, key } = buyer;
    const attempt: Attempt = {
      ...{ payId, nonce, expected: pathOf(input) },
      secrets: [
        ...(key === undefined ? [] : [keyDigest(payId, key)]),
        ...(buyer.mayPay ? [tokenDigest(payId, token)] : []),
      ],
      guardedBy: secretOf(this.store.records.get(payId)),
      arrivedAt: this.schedule.now,
    };
    this.schedule.log(`${connection.process.name} serves ${buyer.name} nonce ${Number(nonce)}`);
    const responseWriter = connectionWriter(
      connection,
      ({ body }) => this.laws.answered(attempt, body, this.store),
      () => this.laws.challenged(attempt, this.store.damaged.has(payId)),
      () => this.#fate.lineIsCut(),
    );
    const requestId = requestIdOf(this.served.push(connection.process) - 1);
    const request = { requestId, input, header, key, mandate: this.#mandates.broughtBy(buyer), left: connection.left };
    serve(request, responseWriter);
  }
}

/** The constants of a run. */
export interface Setting {
  readonly method: 'GET' | 'POST';
  readonly rail: RailKind;
  readonly honoursKeys: boolean;
  readonly payToExclusive: boolean;
  readonly backendTimeoutMs: number;
  /** Whether the money moves before the backend is called, or after it answered. */
  readonly settle: 'before' | 'after';
  /** Whether the resource requires a mandate. */
  readonly mandated: boolean;
}

/** What the pods need of the world. */
interface PodParts {
  readonly schedule: Schedule;
  /** A new process; its name is unique. */
  readonly start: (name: string) => SimGateway;
  /** When the store next has something due, milliseconds. */
  readonly nextDueAt: () => number;
  readonly roundMs: () => number;
}

interface Pod {
  readonly name: string;
  gateway: SimGateway;
  nextRound: number;
}

/** Two pods in which gateways run: a process that dies is started again in its pod. */
class Pods {
  readonly #parts: PodParts;
  readonly #pods: readonly Pod[];

  constructor(parts: PodParts) {
    this.#parts = parts;
    this.#pods = ['A', 'B'].map((name) => ({
      name,
      gateway: parts.start(name),
      nextRound: parts.schedule.now + parts.roundMs(),
    }));
  }

  /** The gateway of a buyer's n-th attempt. */
  at(number: number): SimGateway {
    const pod = this.#pods[number % this.#pods.length];
    if (pod === undefined) throw new Error('no pod');
    return pod.gateway;
  }

  /** Ends a process; its pod starts another one later. */
  crash({ process }: SimGateway, restartMs: number): void {
    process.alive = false;
    const pod = this.#pods.find(({ gateway }) => gateway.process === process);
    if (pod === undefined) return;
    const run = (): void => this.#restart(pod);
    this.#parts.schedule.after(restartMs, { kind: 'world', label: 'restart', actor: undefined, run });
  }

  /** Every process runs. */
  endFaults(): void {
    for (const pod of this.#pods) {
      const { process } = pod.gateway;
      if (process.pausedUntil > this.#parts.schedule.now) process.pausedUntil = this.#parts.schedule.now;
      this.#restart(pod);
    }
  }

  /**
   * The next round of a reconciler that would find something; a round that finds nothing changes
   * nothing, so it is left out.
   */
  nextRound(): { readonly at: number; readonly run: () => void } | undefined {
    const { schedule, nextDueAt, roundMs } = this.#parts;
    const dueAt = nextDueAt();
    if (!Number.isFinite(dueAt)) return undefined;
    const beginOf = ({ gateway: { process }, nextRound }: Pod): number =>
      process.alive ? Math.max(nextRound, dueAt, process.pausedUntil) : Number.POSITIVE_INFINITY;
    const [first] = this.#pods.toSorted((one, other) => beginOf(one) - beginOf(other));
    if (first === undefined || !first.gateway.process.alive) return undefined;
    const run = (): void => {
      schedule.log(`${first.gateway.process.name} round`);
      first.nextRound = schedule.now + roundMs();
      void first.gateway.reconciler.round();
    };
    return { at: beginOf(first), run };
  }

  #restart(pod: Pod): void {
    if (pod.gateway.process.alive) return;
    const { schedule, start, roundMs } = this.#parts;
    schedule.log(`${pod.name} starts`);
    pod.gateway = start(pod.name);
    pod.nextRound = schedule.now + roundMs();
  }
}
