/**
 * Finds the handlers of a call by the exact text of its target: a search through the router of
 * Express costs as much as all steps of a free call together.
 */

import type { ErrorRequestHandler, Request, RequestHandler } from 'express';
import { inOrder } from '../server/http/in-order.ts';
import type { CallMount } from './mount-adapters.ts';

/** The pattern of the HTTP adapter's route. */
export const INVOKE_PATH = '/api/resources/:id/invoke';
/** Ids of resources, none of which needs an escape. */
const ID = /^[A-Za-z0-9._-]+$/;
const [BEFORE = '', AFTER = ''] = INVOKE_PATH.split(':id');

/**
 * What takes a call past the router. A target in any other spelling (escaped, with a query) goes
 * through it, and so does every other method; the answers are the same.
 * @param passed what a call passes first, in the order of the router
 */
export function callShortcut(
  passed: readonly RequestHandler[],
  mounts: readonly CallMount[],
  failed: ErrorRequestHandler,
): (req: Request) => RequestHandler | undefined {
  const byPath = new Map<string, RequestHandler>();
  for (const { paths, handlers } of mounts) {
    // As a route of Express has it: spans are named by it.
    const route = { path: paths };
    const noteRoute: RequestHandler = (req, _res, next) => {
      req.route = route;
      next();
    };
    for (const path of paths) byPath.set(path, inOrder([...passed, noteRoute, ...handlers], failed));
  }
  const invoke = byPath.get(INVOKE_PATH);
  byPath.delete(INVOKE_PATH);
  return function shortcutOf(req) {
    const { method, url } = req;
    if (method !== 'POST') return undefined;
    const exact = byPath.get(url);
    if (exact !== undefined || invoke === undefined || !url.startsWith(BEFORE) || !url.endsWith(AFTER)) return exact;
    const id = url.slice(BEFORE.length, -AFTER.length);
    if (!ID.test(id)) return undefined;
    req.params = { id };
    return invoke;
  };
}
