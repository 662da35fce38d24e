import type { KeyRing } from '../crypto/key-ring.ts';
import { openText, sealText } from '../crypto/sealed-text.ts';
import { MAX_PARKED_LENGTH, type ParkedCalls } from './parked-calls.ts';

/**
 * Parked calls whose store sees nothing of what they ask for. Without a ring nothing is sealed. One that cannot be opened is as one that
 * is not there: its buyer sends it again. `unreadable`: told of each.
 */
export function sealedParkedCalls(calls: ParkedCalls, ring: KeyRing | undefined, unreadable: () => void): ParkedCalls {
  const contextOf = (name: string) => ['parked', name];
  return {
    ...calls,
    async park(name, call, forMs) {
      if (call.length > MAX_PARKED_LENGTH)
        throw new RangeError(`a call over ${MAX_PARKED_LENGTH} characters is not parked`);
      return calls.park(name, ring === undefined ? call : sealText(ring, call, contextOf(name)), forMs);
    },
    async claim(name, claimant, forMs) {
      const claim = await calls.claim(name, claimant, forMs);
      if (claim.kind !== 'yours') return claim;
      const call = openText(ring, claim.call, contextOf(name));
      if (call !== undefined) return { ...claim, call };
      unreadable();
      return { kind: 'none' };
    },
  };
}
