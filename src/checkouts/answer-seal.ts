/**
 * Seals the answers that the store keeps for repeated calls, bound to the record that holds them.
 */

import { createKeyRing, type SealingKeys } from '../crypto/seal.ts';

/** What a sealed answer belongs to. It opens nowhere else. */
interface AnswerContext {
  /** The record's name. */
  readonly name: string;
  readonly fingerprint: string;
  readonly status: number;
}

/** Kept answers as the store has them: base64url text that reveals nothing. */
export interface AnswerSeal {
  seal(body: Uint8Array, context: AnswerContext): string;
  /** Undefined when no key opens it: the call was made, and its end counts as unknown. */
  open(sealed: string, context: AnswerContext): Uint8Array | undefined;
}

export function createAnswerSeal(keys: SealingKeys): AnswerSeal {
  // Sessions are repetitive text.
  const ring = createKeyRing(keys, { deflate: true });
  return {
    seal: (body, context) => ring.seal(body, partsOf(context)).toString('base64url'),
    open: (sealed, context) => ring.open(Buffer.from(sealed, 'base64url'), partsOf(context)),
  };
}

function partsOf({ name, fingerprint, status }: AnswerContext): readonly (string | number)[] {
  return [name, fingerprint, status];
}
