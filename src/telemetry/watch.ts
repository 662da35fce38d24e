import type { Request, Response } from 'express';
import type { LayerName, LayerWatch } from '../layers/measured.ts';
import type { CallMetrics } from './call-metrics.ts';
import type { Tracing } from './tracing.ts';

/** Everybody who is told of requests, as one. */
export interface Watch {
  opened(): void;
  closed(req: Request, res: Response): void;
  layer(name: LayerName): LayerWatch;
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
