import { PassThrough } from 'node:stream';
import type { BackendAnswer } from '../../../src/backend/backend-exchange.ts';
import { type Deliverable, fetchForBuyer } from '../../../src/payments/delivery/fetch-answer.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { createReconciler, type Reconciler } from '../../../src/payments/settlement/reconciler.ts';
import { rest, virtualTime } from './virtual-time.ts';
import type { worldOfEachTest } from './world.ts';

/**
 * A reconciler over a test's settlement, with a scripted backend. Its loop runs on a time
 * of its own.
 */
export interface Bench {
  /** Whether the backend may be asked twice. */
  repeatable: boolean;
  /** Whether the backend answers, or fails with 500. */
  answers: boolean;
  /** Called with each delivery, which then never ends; undefined: they end. */
  hang: (() => void) | undefined;
  /** What every delivery throws, if anything. */
  fault: Error | undefined;
  /** Calls to the backend. */
  exchanges: number;
  /** What was to be delivered. */
  readonly delivered: string[];
  /** Payments that attempts of the process work on. */
  running: ReadonlySet<string>;
  readonly warnings: { readonly payId?: string; readonly err: unknown }[];
  open(through?: PaymentLedger, random?: number): Reconciler;
  /** Lets the loop's time go on; the store's clock stands. */
  pass(ms: number): Promise<void>;
}

export function reconcilerBench(world: ReturnType<typeof worldOfEachTest>): Bench {
  const time = virtualTime();
  const exchange = async (): Promise<BackendAnswer> => {
    bench.exchanges += 1;
    const body = new PassThrough();
    body.end('"bought"');
    return { status: bench.answers ? 200 : 500, headers: { 'content-type': 'application/json' }, body };
  };
  const bench: Bench = {
    repeatable: true,
    answers: true,
    hang: undefined,
    fault: undefined,
    exchanges: 0,
    delivered: [],
    warnings: [],
    running: new Set(),
    open: (through = world.ledger, random = 0) =>
      createReconciler({
        ledger: through,
        settler: world.settler(through),
        journalOf: world.journal,
        deliverable: () => ({ repeatable: bench.repeatable, timeoutMs: 1_000 }),
        deliver: async (paid, journal) => {
          if (bench.fault !== undefined) throw bench.fault;
          if (bench.hang !== undefined) {
            bench.hang();
            await new Promise(() => undefined);
          }
          bench.delivered.push(paid.record.payId);
          const resource: Deliverable = {
            path: '/report',
            repeatable: bench.repeatable,
            timeoutMs: 1_000,
            maxResponseBytes: 1_000,
            relayStatuses: { sold: [], unpaid: [] },
            headers: {},
          };
          await fetchForBuyer(paid, resource, journal, exchange, world.recorder(through));
        },
        gateOpen: () => world.gateOpen,
        running: () => bench.running,
        reserveBackend: async () => {
          const connection = await world.reserveBackend();
          return connection === undefined ? undefined : { ...connection, exchange };
        },
        warn: (facts) => void bench.warnings.push(facts),
        time,
        random: () => random,
      }),
    async pass(ms) {
      await time.pass(ms);
      await rest();
    },
  };
  return bench;
}
