/** Runs the steps of a call in order, and reports for metrics and traces when it enters one. */

import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
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
 * Stages that a step passes on untouched. Calls at these stages do not enter the step: they would
 * hide how long other calls spend in it.
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

/**
 * One handler that runs `handlers` in order, and then its own `next`. As in Express, each of them
 * gets a `next` and may return a promise. `failed` answers an error that one of them throws,
 * rejects with or passes to `next`; an error that `failed` throws, and every error without
 * `failed`, goes to the own `next`. The name of the handler lists their names.
 */
export function inOrder(handlers: readonly RequestHandler[], failed: ErrorRequestHandler = passOn): RequestHandler {
  const inOrder: RequestHandler = (req, res, next) => {
    let at = 0;
    const fail = (thrown: unknown): void => {
      try {
        failed(thrown ?? new Error('a handler failed without a reason'), req, res, next);
      } catch (error) {
        next(error);
      }
    };
    const go = (thrown?: unknown): void => {
      const handler = handlers[at];
      if (thrown !== undefined) fail(thrown);
      else if (handler === undefined) next();
      else {
        at += 1;
        try {
          const running: unknown = handler(req, res, go);
          if (running instanceof Promise) running.then(undefined, fail);
        } catch (error) {
          fail(error);
        }
      }
    };
    go();
  };
  return Object.defineProperty(inOrder, 'name', { value: handlers.map(({ name }) => name).join(' ') });
}

function passOn(thrown: unknown, _req: Request, _res: Response, next: NextFunction): void {
  next(thrown);
}
