import { createKeyRing, type SealingKeys } from '../crypto/key-ring.ts';

/** What a sealed answer belongs to. It opens nowhere else. */
interface AnswerContext {
  /** The record's name. */
  readonly name: string;
  readonly fingerprint: string;
  readonly status: number;
}

/** Kept answers as the store has them: base64url text that tells nothing. */
export interface AnswerSeal {
  seal(body: Uint8Array, context: AnswerContext): string;
  /** Undefined when it cannot be opened, whyever: then nobody knows the answer, but the call was made. */
  open(sealed: string, context: AnswerContext): Uint8Array | undefined;
}

export function createAnswerSeal(keys: SealingKeys): AnswerSeal {
  // Sessions are text that repeats itself.
  const ring = createKeyRing(keys, { deflate: true });
  return {
    seal: (body, context) => ring.seal(body, partsOf(context)).toString('base64url'),
    open: (sealed, context) => ring.open(Buffer.from(sealed, 'base64url'), partsOf(context)),
  };
}

function partsOf({ name, fingerprint, status }: AnswerContext): readonly (string | number)[] {
  return [name, fingerprint, status];
}
