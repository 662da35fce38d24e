/** Counts calls, and times them in each middleware. */

import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Request, Response } from 'express';
import { outcomeOf, resourceIn } from '../../pipeline/call.ts';
import type { StepName, StepWatch } from '../../pipeline/middleware/timed.ts';
import { type AccessRecord, accessRecordOf } from '../../server/http/access-record.ts';
import type { Tracing } from '../traces/tracing.ts';
import type { Duration, Durations } from './durations.ts';

export interface CallMetrics {
  /** Times a middleware. Calls that do not come to it are not in its histogram. */
  watch(step: StepName): StepWatch;
  /** A request has come in. */
  opened(): void;
  /** A request is over. */
  closed(res: Response): void;
}

/** Label values come from the catalogue or from the code: no caller can make a new time series. */
export function callMetrics(registry: Registry, durations: Durations): CallMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'acg_calls_total',
    help:
      'Messages to the adapters by outcome: delivered, replayed, payment_required, client_gone, or an error code. ' +
      'Without a resource: refused before one was found. Watch BACKEND_ERROR, STORAGE_ERROR and PAYMENT_SETTLEMENT_FAILED.',
    labelNames: ['resource', 'channel', 'outcome'] as const,
    registers,
  });
  // A counter of its own: an alert on its growth needs the zero, which an unused label does not
  // have.
  const bugs = new Counter({
    name: 'acg_bugs_total',
    help: 'Calls that ended with INTERNAL_ERROR. The log line "a bug" says where.',
    registers,
  });
  const steps = durations.histogram(
    'acg_layer_seconds',
    'Time that calls spent in each middleware, to the answer. front: reading the message; verify, settle: paid calls only; ' +
      'forward: the backend, to the head of its answer; conclude: the answer, at the pace of its reader.',
    'layer',
  );
  const whole = durations.histogram(
    'acg_call_seconds',
    'Time from the head of a message to an adapter to the last byte of its answer.',
    'channel',
  );
  const front = steps('front');
  // Children are kept: finding one by its labels costs more than counting in it.
  const counts = new Map<string, { inc(): void }>();
  const counted = (resource: string, channel: string, outcome: string): void => {
    const key = `${channel} ${outcome} ${resource}`;
    const known = counts.get(key);
    const count = known ?? calls.labels(resource, channel, outcome);
    if (known === undefined) counts.set(key, count);
    count.inc();
  };
  let inFlight = 0;
  new Gauge({
    name: 'acg_requests_in_flight',
    help: "Requests of agents, operators and probes on the agents' listener whose answers are not out yet.",
    registers,
    collect() {
      this.set(inFlight);
    },
  });
  return {
    opened() {
      inFlight += 1;
    },
    watch(step) {
      const clock = steps(step);
      return function entered(res) {
        const account = accessRecordOf(res);
        if (account !== undefined) enter(account, clock, front, performance.now());
      };
    },
    closed(res) {
      inFlight -= 1;
      const account = accessRecordOf(res);
      const channel = account?.channel;
      if (account === undefined || channel === undefined) return;
      const now = performance.now();
      account.step?.took(now - account.stepSince);
      whole(channel).took(now - account.openedAt);
      const outcome = outcomeOf(res);
      if (outcome === 'INTERNAL_ERROR') bugs.inc();
      if (outcome !== undefined) counted(resourceIn(res) ?? '', channel, outcome);
    },
  };
}

function enter(account: AccessRecord, clock: Duration, front: Duration, now: number): void {
  const { step, stepSince, openedAt } = account;
  if (step === undefined) front.took(now - openedAt);
  else step.took(now - stepSince);
  account.step = clock;
  account.stepSince = now;
}

/** Metrics and traces of requests, as one. */
export interface Watch {
  opened(): void;
  closed(req: Request, res: Response): void;
  layer(name: StepName): StepWatch;
}

/** Metrics always, traces if there is a collector. */
export function watchOver(calls: CallMetrics, { entered, closed }: Tracing): Watch {
  return {
    opened: () => calls.opened(),
    closed(req, res) {
      calls.closed(res);
      closed(req, res);
    },
    layer(name) {
      const clock = calls.watch(name);
      if (entered === undefined) return clock;
      return function watched(res) {
        clock(res);
        entered(res, name);
      };
    },
  };
}
