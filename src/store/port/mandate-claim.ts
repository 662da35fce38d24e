/** Checks what a register of mandates is given, before a store writes any of it. */

import type { MandateClaim } from '../../mandates/register/register.ts';
import { isMandateClaim } from '../../mandates/stored-mandate.ts';

/** Longest name of a call, characters. */
const MAX_NAME_LENGTH = 256;

/** @throws RangeError a bug of the caller */
export function assertClaim(claim: MandateClaim): void {
  if (!isMandateClaim(claim)) throw new RangeError('a claim of a mandate is out of its bounds');
}

/** @throws RangeError a bug of the caller */
export function assertCallName(name: string): void {
  if (name === '' || name.length > MAX_NAME_LENGTH || !name.isWellFormed())
    throw new RangeError('the name of a call is out of its bounds');
}
