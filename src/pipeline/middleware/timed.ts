/** Names the steps of a call and reports when a call enters one, for metrics and traces. */

import type { RequestHandler, Response } from 'express';
import { currentCall, type Stage } from '../call.ts';

/** The adapter, then the middleware in the order of a call. These are values of metric labels. */
const TIMED_STEPS = [
  'front',
  'admit',
  'resolve',
  'validate',
  'challenge',
  'verify',
  'authorize',
  'settle',
  'forward',
  'conclude',
] as const;
export type StepName = (typeof TIMED_STEPS)[number];

/** Called when a call enters a step; it has left the one before. */
export type StepWatch = (res: Response) => void;

/**
 * Stages that a step passes on untouched, so that it is not entered. Their calls would hide how
 * long the others spend in it.
 */
const PASSING: Partial<Record<StepName, Stage>> = { verify: 'funded', settle: 'funded', forward: 'answered' };

/** Names each middleware and reports to the watch when a call enters it. */
export function timed(watch: (step: StepName) => StepWatch) {
  return function timedAs(name: StepName, middleware: RequestHandler): RequestHandler {
    const entered = watch(name);
    const passing = PASSING[name];
    return function timedMiddleware(req, res, next) {
      if (passing !== undefined && currentCall(res)?.stage === passing) {
        next();
        return;
      }
      entered(res);
      return middleware(req, res, next);
    };
  };
}
