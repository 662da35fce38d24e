import { randomBytes } from 'node:crypto';
import { type TokenKey, type TokenScope, tokenKey } from './buyer-token.ts';

/** A value that all processes of a merchant share because the first one wrote it (contract 4.5). */
export interface SharedSecrets {
  /** The value under this name: the candidate when there was none. @throws StoreError */
  agree(name: string, candidate: string): Promise<string>;
}

/** The keys of buyers' tokens. */
export interface TokenKeys {
  /** All that are accepted, the one that issues first. */
  current(): readonly [TokenKey, ...TokenKey[]];
  close(): void;
}

/** The name of the shared secret. */
const NAME = 'buyer-token';
const SECRET_BYTES = 32;
/** Between two looks at the shared secret, milliseconds: a store that lost it gets it again, and all processes agree anew. */
const LOOK_EVERY_MS = 30_000;
/** The same while the store is silent, milliseconds. */
const LOOK_AGAIN_MS = 1_000;
/** Keys that were shared before and are still accepted: a token outlives its key by minutes at most. */
const KEPT_KEYS = 4;

/**
 * Keys from the operator's secrets, the newest first. Without one the processes agree on a random secret through the store; until it
 * answers a process issues under a secret of its own, and offers that as the shared one.
 */
export function openTokenKeys(secrets: readonly string[], scope: TokenScope, shared: SharedSecrets): TokenKeys {
  const [newest, ...older] = secrets.map((secret) => tokenKey(Buffer.from(secret), scope));
  if (newest !== undefined) return { current: () => [newest, ...older], close: () => undefined };

  let candidate = randomBytes(SECRET_BYTES).toString('base64url');
  let keys: readonly [TokenKey, ...TokenKey[]] = [tokenKey(Buffer.from(candidate), scope)];
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const look = async (): Promise<void> => {
    let again = LOOK_EVERY_MS;
    try {
      const agreed = await shared.agree(NAME, candidate);
      if (agreed !== candidate) {
        keys = [tokenKey(Buffer.from(agreed), scope), ...keys.slice(0, KEPT_KEYS)];
        candidate = agreed;
      }
    } catch {
      // Readiness tells that the store is away.
      again = LOOK_AGAIN_MS;
    }
    if (closed) return;
    timer = setTimeout(() => void look(), again);
    timer.unref();
  };
  void look();
  return {
    current: () => keys,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
