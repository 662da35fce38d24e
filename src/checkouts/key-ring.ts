import { keyIdOf, type SealContext, seal, unseal } from './seal.ts';
import type { SealingKey } from './settings.ts';

/** Hides kept answers from whoever reads the store. */
export interface KeyRing {
  seal(body: Uint8Array, context: SealContext): string;
  /** Undefined when it cannot be opened, whyever: then nobody knows the answer, but the call was made. */
  open(sealed: string, context: SealContext): Uint8Array | undefined;
}

/**
 * The first key seals, all of them open. To change keys without a gap every gateway first gets the new one at the second place, and then
 * at the first.
 */
export function createKeyRing(keys: readonly [SealingKey, ...SealingKey[]]): KeyRing {
  const [first] = keys;
  const byId = new Map(keys.map((key) => [key.id, key]));
  return {
    seal: (body, context) => seal(body, first, context),
    open(sealed, context) {
      const key = byId.get(keyIdOf(sealed) ?? '');
      if (key === undefined) return undefined;
      try {
        return unseal(sealed, key, context);
      } catch {
        return undefined;
      }
    },
  };
}
