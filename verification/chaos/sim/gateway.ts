/** The real pipeline and settlement over simulated ports. */

import type { Request, Response } from 'express';
import type { Cancellation, Exchange, ReserveBackend } from '../../../src/backend/backend-exchange.ts';
import { type EventSink, type Journal, openJournal } from '../../../src/events/journal.ts';
import { createDeliveryRecorder, type DeliveryWarnings } from '../../../src/payments/delivery/delivery-recorder.ts';
import { fetchForBuyer } from '../../../src/payments/delivery/fetch-answer.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { createReplacedOffers } from '../../../src/payments/settlement/accepted-offer.ts';
import { createLeases } from '../../../src/payments/settlement/attempt.ts';
import { createFindKnown } from '../../../src/payments/settlement/known-payment.ts';
import { createUnpaidWork } from '../../../src/payments/settlement/places.ts';
import { createReconciler, type Reconciler } from '../../../src/payments/settlement/reconciler.ts';
import { createSettler, joining } from '../../../src/payments/settlement/settle.ts';
import { createProofVerifier, createUnprovenSignatures } from '../../../src/payments/settlement/verifier.ts';
import type { PaymentRail } from '../../../src/payments/x402/wire/types.ts';
import type { Call, ResponseWriter } from '../../../src/pipeline/call.ts';
import { createCollector } from '../../../src/pipeline/collecting.ts';
import { authorize } from '../../../src/pipeline/middleware/authorize.ts';
import { createSelling } from '../../../src/pipeline/middleware/challenge.ts';
import { deliver } from '../../../src/pipeline/middleware/deliver.ts';
import { errorHandler } from '../../../src/pipeline/middleware/error-handler.ts';
import { forward } from '../../../src/pipeline/middleware/forward.ts';
import { settle } from '../../../src/pipeline/middleware/settle.ts';
import { inOrder } from '../../../src/pipeline/middleware/timed.ts';
import { verify } from '../../../src/pipeline/middleware/verify.ts';
import { isRepeatable, type Resource } from '../../../src/resources/resource.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import type { Time } from '../../../src/time/time.ts';
import { examine, KEEP_ANSWER_MS, offerOf, RESOURCE_ID, SCOPE, TOKENS } from './buyer.ts';
import { simMandates } from './mandate.ts';
import type { Actor, Schedule } from './schedule.ts';
import type { Setting } from './world.ts';

/**
 * Renewals of a lease are rarer here than in production, milliseconds: each is three steps, and a
 * settlement can hang for a minute.
 */
const RENEW_EVERY_MS = 1_000;

/** The ports of a simulated gateway, all of them simulated. */
interface GatewayPorts {
  readonly process: Process;
  readonly ledger: PaymentLedger;
  /** The ledger of calls that only wait. */
  readonly watched: Pick<PaymentLedger, 'read'>;
  readonly rail: PaymentRail;
  readonly exchange: Exchange;
  readonly reserveBackend: ReserveBackend;
  readonly resource: Resource;
  readonly settle: Setting['settle'];
  readonly payToExclusive: boolean;
  readonly sink: EventSink;
  readonly random: () => number;
  readonly warnings: DeliveryWarnings;
  /** Reports an error of the code under test. */
  readonly onBug: (thrown: unknown) => void;
}

/** What a buyer sends. */
interface PaidRequest {
  readonly requestId: string;
  readonly input: string;
  readonly header: string;
  readonly key: string | undefined;
  /** As the request carries it; undefined: none. */
  readonly mandate: string | undefined;
  /** Its client is gone. */
  readonly left: Cancellation;
}

/** A gateway: the real middleware and the real `src/payments`, wired as in production. */
export interface SimGateway {
  readonly process: Process;
  readonly reconciler: Reconciler;
  serve(request: PaidRequest, responseWriter: ResponseWriter): void;
}

const UNPAID_WORK = { perResource: 1_000, perNetwork: 1_000, all: 1_000, windowMs: 60_000 };

/** The path for an input; the simulated backend answers with it. */
export function pathOf(input: string): string {
  return `/reports?for=${input}`;
}

/** The id of the n-th request that reached a process. */
export function requestIdOf(index: number): string {
  return `req_${index}`;
}

export function createSimGateway(ports: GatewayPorts): SimGateway {
  const { process, ledger, rail, exchange, reserveBackend, resource, payToExclusive, sink, onBug } = ports;
  const { time } = process;
  const networkOf = (): string => '-';
  const unpaidWork = createUnpaidWork(() => UNPAID_WORK, time);
  const gate = {
    accepting: () => true,
    reserveBackend,
    networkOf,
    noteProof: () => undefined,
    quoteBought: () => undefined,
  };
  const selling = createSelling(new Map([[RESOURCE_ID, offerOf(ports.settle)]]));
  const leases = createLeases(ledger, time, RENEW_EVERY_MS);
  const payeeRules = () => ({ payToExclusive, onStoreLoss: 'deliver', offered: true }) as const;
  const settler = createSettler({ ledger, rail, leases, unpaidWork, payeeRules, time });
  const checkouts = createDeliveryRecorder(ledger, () => KEEP_ANSWER_MS, ports.warnings, time);
  const unproven = createUnprovenSignatures(time);
  const verifier = createProofVerifier(
    examine,
    { unproven, tokens: TOKENS, replaced: createReplacedOffers(), blockedPayers: new Set() },
    () => time.now(),
  );
  const deliverable = { ...resource.backend, repeatable: isRepeatable(resource.backend), headers: {} };
  const reconciler = createReconciler({
    ledger,
    settler,
    gateOpen: gate.accepting,
    journalOf: ({ requestId }) => journalOf(requestId, sink),
    deliverable: () => deliverable,
    reserveBackend,
    deliver: (paid, journal) => fetchForBuyer(paid, deliverable, journal, exchange, checkouts),
    warn: ({ err }) => {
      if (!isExpected(err)) onBug(err);
    },
    time,
    random: ports.random,
  });
  const mandates = simMandates(() => time.now());
  const receipts = { push: () => onBug(new Error('a receipt of a free call')) };
  const collector = createCollector({
    ...{
      find: createFindKnown(ledger, { ...SCOPE, assets: [SCOPE] }),
      verifier,
      networkOf,
      events: sink,
      removed: resource.backend,
    },
    catalogue: { byId: new Map([[RESOURCE_ID, resource]]) },
  });
  const last = errorHandler((error) => {
    if (error.code === 'INTERNAL_ERROR') onBug(error.cause);
  });
  const pass = inOrder(
    [
      inOrder([verify(selling, verifier, gate)], collector.refused),
      inOrder([authorize(mandates)], collector.refused),
      settle(selling, joining(settler, ports.watched, time), gate, collector, mandates),
      forward(exchange, checkouts),
      deliver(checkouts, receipts),
    ],
    last,
  );
  return {
    process,
    reconciler,
    serve({ requestId, input, header, key, mandate, left }, responseWriter) {
      const journal = journalOf(requestId, sink);
      journal.record('resource.requested');
      const call: Call = {
        stage: 'prepared',
        requestId,
        callId: callIdOf(requestId),
        channel: 'http',
        resourceId: RESOURCE_ID,
        input: { for: input },
        rawInput: undefined,
        proof: { kind: 'header', value: header },
        mandate: mandate === undefined ? { kind: 'none' } : { kind: 'text', value: mandate },
        idempotencyKey: key,
        trace: { traceparent: undefined, tracestate: undefined },
        responseWriter,
        startedAt: performance.now(),
        left,
        resource,
        journal,
        request: { method: resource.backend.method, path: pathOf(input), headers: {}, body: undefined },
      };
      // Of a response the middleware uses `locals` alone: the response writer has the connection.
      void pass({} as Request, { locals: { call, requestId } } as unknown as Response, (thrown) => {
        if (thrown !== undefined) onBug(thrown);
      });
    },
  };
}

function callIdOf(requestId: string): string {
  return `call_${requestId}`;
}

function journalOf(requestId: string, sink: EventSink): Journal {
  return openJournal({ requestId, callId: callIdOf(requestId), resourceId: RESOURCE_ID, adapter: 'http' }, sink);
}

/**
 * Expected warnings of a reconciler in a run with faults: a silent store, and an outcome that stays
 * open.
 */
function isExpected(err: unknown): boolean {
  return !(err instanceof Error) || err.name === 'StoreError' || err.name === 'Unwritten';
}

/**
 * How a request to the store goes wrong. `unreceived`: nothing happened. `unanswered`: it happened,
 * the reply is lost. `late`: the caller gives up, and it happens afterwards.
 */
export type StoreFault = 'unreceived' | 'unanswered' | 'late';

/** How long requests take, and whether they arrive. */
export interface Wire {
  /** One way, milliseconds. */
  latencyMs(label: string): number;
  /** For a request to the store. */
  storeFault(label: string): StoreFault | undefined;
}

/** Timeout of a command of the store, milliseconds, as in the real one. */
const COMMAND_TIMEOUT_MS = 500;

/**
 * One gateway process: its calls go out and come back, until it dies. Then its promises never
 * settle and its timers are gone, as those of a killed process are.
 */
export class Process implements Actor {
  readonly name: string;
  readonly #schedule: Schedule;
  readonly #wire: Wire;
  alive = true;
  pausedUntil = 0;
  /** Requests to the store that went wrong. */
  storeFaults = 0;

  constructor(name: string, schedule: Schedule, wire: Wire) {
    this.name = name;
    this.#schedule = schedule;
    this.#wire = wire;
  }

  /**
   * A call over a wire: the effect happens when it arrives, the promise settles when the reply is
   * back.
   */
  call<T>(label: string, effect: () => T, replyMs = 0): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#schedule.after(this.#wire.latencyMs(label), {
        kind: 'effect',
        label,
        actor: this,
        run: () => {
          const settle = outcomeOf(effect, resolve, reject);
          this.#reply(label, replyMs, settle);
        },
      });
    });
  }

  /** The same to the store, which may be silent. */
  ask<T>(label: string, effect: () => T): Promise<T> {
    const fault = this.#wire.storeFault(label);
    if (fault === undefined) return this.call(label, effect);
    this.storeFaults += 1;
    this.#schedule.log(`${this.name} fault ${fault} ${label}`);
    if (fault === 'late')
      this.#schedule.after(COMMAND_TIMEOUT_MS + this.#wire.latencyMs(label) * 50, {
        kind: 'world',
        label: `${label}, late`,
        actor: undefined,
        run: () => void outcomeOf(effect, ignore, ignore),
      });
    const silent = (): never => {
      if (fault === 'unanswered') effect();
      throw new StoreError(`simulated: ${fault}`);
    };
    return this.call(label, silent, fault === 'late' ? COMMAND_TIMEOUT_MS : 0);
  }

  /**
   * The clock of this process: it waits while the process is paused, and never ends once it is
   * dead.
   */
  readonly time: Time = {
    now: () => this.#schedule.now,
    sleep: (ms) =>
      new Promise((resolve) => {
        this.#schedule.after(ms, { kind: 'wake', label: 'timer', actor: this, run: resolve });
      }),
  };

  #reply(label: string, ms: number, run: () => void): void {
    this.#schedule.after(ms + this.#wire.latencyMs(label), { kind: 'reply', label, actor: this, run });
  }
}

function outcomeOf<T>(effect: () => T, resolve: (value: T) => void, reject: (thrown: unknown) => void): () => void {
  try {
    const value = effect();
    return () => resolve(value);
  } catch (thrown) {
    return () => reject(thrown);
  }
}

function ignore(): void {}
