/**
 * The decision of the passthrough without one of its steps, for the positive control of the slip
 * table: a table that shows no slip without them would show nothing with them either.
 */

import type { RequestLine, Route } from '../../src/passthrough/route.ts';
import type { RouteOf } from './gateway.ts';
import { SOLD } from './paths.ts';

export const STEPS = {
  target: 'targets that no server should be sent',
  tolerant: 'plain paths compared without case, escapes and slash',
  ambiguous: 'paths that servers read differently',
  second: 'other names of what is sold',
  methods: 'every method of a sold path',
} as const;

/** One part of the rule. */
export type Step = keyof typeof STEPS;

/** Lets pass what only this step refuses. */
export function without(step: Step, routeOf: RouteOf): RouteOf {
  return (req) => {
    const route = routeOf(req);
    return stepOf(route, req) === step ? { kind: 'pass' } : route;
  };
}

/** The step that refused; undefined when none did. */
export function stepOf(route: Route, { url = '' }: RequestLine): Step | undefined {
  if (route.kind !== 'refused') return undefined;
  switch (route.error.details?.reason) {
    case 'request_target':
      return 'target';
    case 'ambiguous_path':
      return /backend\.passthrough\.allow/.test(route.error.message) ? 'second' : 'ambiguous';
    case 'path_spelling':
      return 'tolerant';
    default:
      if (route.error.code === 'METHOD_NOT_ALLOWED') return 'methods';
      // The path of something that is sold through other channels only.
      return isPlain(url) ? undefined : 'tolerant';
  }
}

function isPlain(url: string): boolean {
  return SOLD.some(({ target }) => url.split('?')[0] === target);
}
