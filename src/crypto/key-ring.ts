import { keyIdOf, type SealContext, type SealingKey, seal, unseal } from './seal.ts';

/** One key or more: the first seals, all of them open. */
export type SealingKeys = readonly [SealingKey, ...SealingKey[]];

/** Hides what is stored from whoever reads the store. */
export interface KeyRing {
  seal(body: Uint8Array, context: SealContext): Buffer;
  /** Undefined when it cannot be opened, whyever. */
  open(sealed: Uint8Array, context: SealContext): Buffer | undefined;
}

/**
 * The first key seals, all of them open. To change keys without a gap every gateway first gets the new one at the last place, and then
 * at the first. `deflate`: whether what is large is compressed before.
 */
export function createKeyRing(keys: SealingKeys, options: { readonly deflate?: boolean } = {}): KeyRing {
  const [first] = keys;
  const byId = new Map(keys.map((key) => [key.id, key]));
  return {
    seal: (body, context) => seal(body, first, context, options),
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
