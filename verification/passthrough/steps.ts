/** The steps of the passthrough's decision. */

import type { RequestLine, Route } from '../../src/passthrough/route.ts';
import { SOLD } from './paths.ts';

/**
 * One part of the rule: `target` refuses targets that no server should be sent, `tolerant` compares
 * plain paths without case, escapes and slash, `ambiguous` refuses paths that servers read
 * differently, `second` other names of what is sold, `methods` every method of a sold path.
 */
export type Step = 'target' | 'tolerant' | 'ambiguous' | 'second' | 'methods';

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
