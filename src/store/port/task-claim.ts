/** Checks what task claims are given, before a store writes any of it. */

import { DECLINED } from '../../payments/settlement/task-claims.ts';

const NAME = /^[A-Za-z0-9._:-]{1,256}$/;

/** @throws RangeError a bug of the caller */
export function assertNames(...names: readonly string[]): void {
  if (!names.every((name) => NAME.test(name)))
    throw new RangeError('tasks, claimants and attempts are 1 to 256 letters, digits and . _ : -');
}

/** @throws RangeError a bug of the caller */
export function assertClaimant(claimant: string): void {
  assertNames(claimant);
  if (claimant === DECLINED) throw new RangeError('a claimant cannot have the name that stands for declined');
}

/** @throws RangeError a bug of the caller */
export function assertSpan(forMs: number): void {
  if (!Number.isSafeInteger(forMs) || forMs < 0) throw new RangeError('a task is remembered for whole milliseconds');
}
