/** Reads the reason out of what a check throws. */

import assert from 'node:assert/strict';
import { type Reason, Refused } from '../../../src/mandates/ap2/reasons.ts';

/** The reason that something is refused for, or `none`. Anything else that is thrown is a bug. */
export function refusalOf(check: () => unknown): Reason | 'none' {
  try {
    check();
    return 'none';
  } catch (error) {
    return reasonIn(error);
  }
}

/** The same for an asynchronous check. */
export async function lateRefusalOf(check: () => Promise<unknown>): Promise<Reason | 'none'> {
  try {
    await check();
    return 'none';
  } catch (error) {
    return reasonIn(error);
  }
}

function reasonIn(error: unknown): Reason {
  assert.ok(error instanceof Refused, String(error));
  return error.reason;
}
