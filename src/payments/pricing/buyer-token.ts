/** The buyer's token (contract 4.5): how it is made and read, and the keys that it is made with. */

import { hkdfSync, randomBytes, randomFillSync, timingSafeEqual } from 'node:crypto';
import { type HmacPads, hmacPads, hmacSha256 } from '../../crypto/hash.ts';

/**
 * Every 402 carries a token, and official clients echo it beside the proof. A proof is public
 * calldata from its block on and the token is not, so the token tells the buyer from an onlooker.
 * The MAC also covers the terms offered, so that every process that has the key can tell what was
 * offered, whatever its own configuration offers now. 54 bytes, 72 characters of base64url:
 *
 * | bytes | |
 * |---|---|
 * | 0, 1 | version 1; id of the key |
 * | 2..6 | when it was issued, Unix seconds, big-endian |
 * | 7..22 | random |
 * | 23..37 | the first 15 bytes of `bind`, what was asked for; zeros when left unbound |
 * | 38..53 | the first 16 bytes of HMAC-SHA-256 over bytes 0..37 and the terms |
 *
 * Behind a dot the token of a 402 may name a payment that came to nothing although its answer was
 * there (4.7), 32 bytes as 43 characters, which the MAC covers too: a proof that comes with this
 * token buys that answer.
 */
export const TOKEN_CHARACTERS = 72;
/** The dot, and the payment that is named behind it. */
export const NAME_CHARACTERS = 44;
const TOKEN_BYTES = 54;
const VERSION = 1;
const ISSUED_AT = { offset: 2, bytes: 5 } as const;
const RANDOM = { offset: 7, bytes: 16 } as const;
const BIND = { offset: 23, bytes: 15 } as const;
const MAC_OFFSET = 38;
const UNBOUND = Buffer.alloc(BIND.bytes);
const CANONICAL = /^[A-Za-z0-9_-]{72}(?:\.([A-Za-z0-9_-]{43}))?$/;
const KEY_BYTES = 32;
/** The clocks of two processes may differ by this, seconds. */
const CLOCK_SKEW_SECONDS = 60;
/** A proof may be used this long after maxTimeoutSeconds of its challenge (contract 4.2). */
const AFTER_CHALLENGE_SECONDS = 600;
/** Tokens whose random bytes are drawn at once: a draw costs more than the rest of a challenge. */
const POOL_TOKENS = 256;

/** The name of the shared secret. */
const NAME = 'buyer-token';
const SECRET_BYTES = 32;
/** Between two looks at the shared secret, milliseconds: a store that lost it gets it again. */
const LOOK_EVERY_MS = 30_000;
/** Between two looks while the store is silent, milliseconds. */
const LOOK_AGAIN_MS = 1_000;
/** Earlier shared keys that are still accepted: a token outlives its key by minutes at most. */
const KEPT_KEYS = 4;

/** The scope of a token, which proves a 402 of this merchant for this money. */
export interface TokenScope {
  readonly merchantId: string;
  readonly chainId: number;
  readonly asset: string;
  readonly payTo: string;
}

/** A key of tokens. */
export interface TokenKey {
  /** 0 to 255; selects the keys to try, and proves nothing. */
  readonly id: number;
  readonly secret: HmacPads;
}

/** A token that came with a proof, in its canonical form. */
export interface ShownToken {
  readonly text: string;
  /**
   * How long it may still become the secret of a new purchase, milliseconds. 0: not issued for this
   * merchant, or too old; then it only opens what it paid for.
   */
  readonly genuineForMs: number;
}

/** The terms of a 402 beside the scope of the key. */
export interface OfferedTerms {
  /** The canonical invoke URL: the terms of one resource are not those of another. */
  readonly resourceUrl: string;
  /** Base units, without leading zeros. */
  readonly units: string;
  readonly maxTimeoutSeconds: number;
  /**
   * Network and asset that the units are of, where it is not the first entry of `payments.x402`,
   * which the scope names.
   */
  readonly paidIn?: string;
  /** The price follows the input, so the token counts for its own input alone. */
  readonly followsInput?: true;
}

/** A token, and its evidence about the terms that it was read with. */
export interface ReadToken extends ShownToken {
  /**
   * The end of the 402 that offered just these terms, Unix milliseconds; undefined: nothing shows
   * that they were offered.
   */
  readonly offeredUntilMs: number | undefined;
  /** The payment whose answer its buyer may buy; undefined: none, or the token is not genuine. */
  readonly answerOf: string | undefined;
  /** The first 30 hex digits of what its 402 was asked for; undefined: left unbound. */
  readonly boundTo: string | undefined;
}

/** Makes the tokens of challenges and reads those that come back. */
export interface BuyerTokens {
  /**
   * @param bind SHA-256 hex of what is asked for; undefined leaves the token unbound.
   * @param answerOf payId of a payment that came to nothing, whose answer the buyer may buy
   */
  issue(bind: string | undefined, terms: OfferedTerms, answerOf?: string): string;
  /** Undefined for a text that is no token, which makes no proof invalid. `terms`: of the proof. */
  read(echoed: string, terms: OfferedTerms): ReadToken | undefined;
}

/** The text if it is a token in its one spelling; undefined for another text. */
export function tokenText(echoed: string): string | undefined {
  return CANONICAL.test(echoed) ? echoed : undefined;
}

/** The key of a scope, derived from a secret of any length. */
export function tokenKey(secret: Uint8Array, { merchantId, chainId, asset, payTo }: TokenScope): TokenKey {
  const info = `acg buyer token 1|${merchantId}|${chainId}|${asset.toLowerCase()}|${payTo.toLowerCase()}`;
  const derived = Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), info, KEY_BYTES + 1));
  return { id: derived[KEY_BYTES] ?? 0, secret: hmacPads(derived.subarray(0, KEY_BYTES)) };
}

/**
 * @param keys all that are accepted, the one that issues first. Asked for each token, because a
 * shared key may change while the gateway runs.
 */
export function createBuyerTokens(
  keys: () => readonly [TokenKey, ...TokenKey[]],
  now: () => number = Date.now,
): BuyerTokens {
  const random = randomPool();
  // The bytes of the token that is being made: each token writes all of them anew.
  const made = Buffer.alloc(TOKEN_BYTES);
  return {
    issue(bind, terms, answerOf) {
      const [{ id, secret }] = keys();
      made[0] = VERSION;
      made[1] = id;
      made.writeUIntBE(Math.floor(now() / 1_000), ISSUED_AT.offset, ISSUED_AT.bytes);
      random(made);
      if (bind === undefined) made.fill(0, BIND.offset, MAC_OFFSET);
      else made.write(bind, BIND.offset, BIND.bytes, 'hex');
      const named = answerOf === undefined ? '' : Buffer.from(answerOf, 'hex').toString('base64url');
      made.set(mac(made, secret, terms, named), MAC_OFFSET);
      const token = made.toString('base64url');
      return named === '' ? token : `${token}.${named}`;
    },
    read(text, terms) {
      const found = CANONICAL.exec(text);
      if (found === null) return undefined;
      const token = Buffer.from(text.slice(0, TOKEN_CHARACTERS), 'base64url');
      const named = found[1] ?? '';
      if (token[0] !== VERSION) return undefined;
      const issuedAt = token.readUIntBE(ISSUED_AT.offset, ISSUED_AT.bytes);
      const age = Math.floor(now() / 1_000) - issuedAt;
      const oldestSeconds = terms.maxTimeoutSeconds + AFTER_CHALLENGE_SECONDS;
      const young = age >= -CLOCK_SKEW_SECONDS && age <= oldestSeconds;
      const genuine = young && keys().some((key) => key.id === token[1] && isSigned(token, key.secret, terms, named));
      return {
        text,
        // The clock of another process may be behind: the token counts there for a little longer.
        genuineForMs: genuine ? (oldestSeconds - age + CLOCK_SKEW_SECONDS) * 1_000 : 0,
        // The second of issue is rounded down: the challenge may have been made at the end of it.
        offeredUntilMs: genuine ? (issuedAt + 1 + terms.maxTimeoutSeconds) * 1_000 : undefined,
        answerOf: genuine && named !== '' ? Buffer.from(named, 'base64url').toString('hex') : undefined,
        boundTo: token.subarray(BIND.offset, MAC_OFFSET).equals(UNBOUND)
          ? undefined
          : token.toString('hex', BIND.offset, MAC_OFFSET),
      };
    },
  };
}

function mac(token: Buffer, secret: HmacPads, terms: OfferedTerms, named: string): Buffer {
  // As JSON, so that no two terms read alike.
  const { resourceUrl, units, maxTimeoutSeconds, paidIn, followsInput } = terms;
  const offered: (string | number | boolean)[] = [resourceUrl, units, maxTimeoutSeconds];
  if (paidIn !== undefined) offered.push(paidIn);
  if (followsInput !== undefined) offered.push(followsInput);
  const covered = [token.subarray(0, MAC_OFFSET), Buffer.from(JSON.stringify(offered) + named)];
  return hmacSha256(secret, ...covered).subarray(0, TOKEN_BYTES - MAC_OFFSET);
}

function isSigned(token: Buffer, secret: HmacPads, terms: OfferedTerms, named: string): boolean {
  return timingSafeEqual(mac(token, secret, terms, named), token.subarray(MAC_OFFSET));
}

/** Puts fresh random bytes into a token. Each byte of the pool is used once. */
function randomPool(): (token: Buffer) => void {
  const pool = Buffer.alloc(POOL_TOKENS * RANDOM.bytes);
  let used = pool.length;
  return function draw(token) {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    pool.copy(token, RANDOM.offset, used, used + RANDOM.bytes);
    used += RANDOM.bytes;
  };
}

/** The port of values that all processes of a merchant share; the first write counts. */
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

/**
 * Keys from the operator's secrets, the newest first. Without any, the processes agree on a random
 * secret through the store; until it answers a process issues under its own secret, which it offers
 * as the shared one.
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
      // Readiness reports that the store is away.
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
