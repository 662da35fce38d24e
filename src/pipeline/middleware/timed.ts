import type { RequestHandler, Response } from 'express';
import { currentCall, type Stage } from '../call.ts';

/** What a call passes, and its adapter before all of them. */
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

/** Told when a call enters a middleware; it has left the one before. */
export type StepWatch = (res: Response) => void;

/**
 * Stages that a middleware lets pass. Their calls spend no time in it, and would hide how long the
 * others do.
 */
const PASSING: Partial<Record<StepName, Stage>> = { verify: 'funded', settle: 'funded', forward: 'answered' };

/** Names each middleware and tells the watch when a call enters it. */
export function timed(watch: (layer: StepName) => StepWatch) {
  return function measuredAs(name: StepName, layer: RequestHandler): RequestHandler {
    const entered = watch(name);
    const passing = PASSING[name];
    return function measuredLayer(req, res, next) {
      if (passing === undefined || currentCall(res)?.stage !== passing) entered(res);
      return layer(req, res, next);
    };
  };
}
