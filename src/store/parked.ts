import { isSealed } from '../crypto/sealed-text.ts';
import { MAX_PARKED_LENGTH, MAX_STORED_PARKED_LENGTH } from '../payments/parked-calls.ts';

/** Names that calls are parked under, and claimants. Who comes back says the name, so also what is no name is asked for. */
const NAME = /^[A-Za-z0-9._:-]{1,256}$/;

/** Whether a call can have been parked under it; what is no name need not reach an engine. */
export function isParkedName(name: string): boolean {
  return NAME.test(name);
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertParkable(name: string, call: string, forMs: number): void {
  if (!isParkedName(name)) throw new RangeError('a call is parked under 1 to 256 letters, digits and . _ : -');
  const most = isSealed(call) ? MAX_STORED_PARKED_LENGTH : MAX_PARKED_LENGTH;
  if (call.length > most) throw new RangeError(`a call over ${most} characters is not parked`);
  assertSpan(forMs);
}

/** What is wrong with whoever claims or releases. @throws RangeError a bug of the caller, before anything is written. */
export function assertClaimant(claimant: string, forMs: number): void {
  if (!NAME.test(claimant)) throw new RangeError('a claimant is 1 to 256 letters, digits and . _ : -');
  assertSpan(forMs);
}

function assertSpan(forMs: number): void {
  if (!Number.isSafeInteger(forMs) || forMs < 0) throw new RangeError('a call is parked for whole milliseconds');
}
