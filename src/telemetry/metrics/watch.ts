import type { Request, Response } from 'express';
import type { StepName, StepWatch } from '../../pipeline/middleware/timed.ts';
import type { Tracing } from '../traces/tracing.ts';
import type { CallMetrics } from './call-metrics.ts';

/** Everybody who is told of requests, as one. */
export interface Watch {
  opened(): void;
  closed(req: Request, res: Response): void;
  layer(name: StepName): StepWatch;
}

/** Metrics always, traces where somebody collects them. */
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
