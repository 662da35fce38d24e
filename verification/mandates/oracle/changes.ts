/**
 * Changes single characters of right tokens and compares the verdicts of `jose` and this verifier.
 */

import { createHash } from 'node:crypto';
import { compactVerify, importJWK } from 'jose';
import { refusalOf } from '../../../spec/mandates/ap2/refusal.ts';
import { publishedJwk } from '../../../spec/support/ap2/keys.ts';
import type { Mint } from '../../../spec/support/ap2/mint.ts';
import type { Jwk } from '../../../spec/support/ap2/oracle.ts';
import { NOW, profileWith } from '../../../spec/support/ap2/purchase.ts';
import { createCheckoutCheck, createCheckoutKeys } from '../../../src/mandates/ap2/checkout/checkout.ts';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout/checkout-mint.ts';
import { type Chance, chanceOf } from '../../chaos/sim/chance.ts';
import type { SignedChain } from './chains.ts';

/** The verdict of this verifier on a token in place of the right one: a reason, or `none`. */
export type Judge = (changed: string) => Promise<string>;

/** A right token, its key, and this verifier's judge of it. */
export interface Alterable {
  readonly what: string;
  readonly jwt: string;
  readonly jwk: Jwk;
  readonly alg: string;
  readonly judge: Judge;
}

export interface Trials {
  /** Changed tokens that `jose` refused and that were accepted here. There must be none. */
  readonly disagreed: readonly string[];
  readonly refusedThere: number;
  /** The number of refusals here by reason. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** The tokens of a mandate; each is judged at its position in the whole presentation. */
export function tokensToAlter({ kind, alg, made, tokens, verify }: SignedChain): readonly Alterable[] {
  const envelope = Buffer.from(made.header, 'base64url').toString();
  return tokens.map(({ jwt, jwk }, at) => ({
    what: `${alg}, ${kind}, token ${at}`,
    ...{ jwt, jwk, alg },
    async judge(changed) {
      // As JSON text: the changed character may be one that JSON escapes.
      const text = envelope.replace(jwt, () => JSON.stringify(changed).slice(1, -1));
      const verdict = await verify(Buffer.from(text).toString('base64url'));
      return verdict.kind === 'refused' ? verdict.reason : 'none';
    },
  }));
}

/** Checkouts of the merchant, each with a mandate for it. */
export function checkoutsToAlter(mint: Mint): readonly Alterable[] {
  const { checkout } = mint.parties;
  const keys = createCheckoutKeys([publishedJwk(checkout)]);
  const check = createCheckoutCheck({ profile: profileWith(), keys, minted: createIssuedCheckouts() });
  const judge: Judge = async (jwt) => {
    const digest = createHash('sha256').update(jwt).digest('base64url');
    return refusalOf(() => check({ checkout_hash: digest, checkout_jwt: jwt }, NOW));
  };
  return Array.from({ length: 5 }, (_, at) => {
    const { jwt } = mint.checkout();
    return { what: `checkout ${at}`, jwt, jwk: checkout.publicJwk, alg: 'ES256', judge };
  });
}

/** Changes one character, `count` times. @throws Error when a right token is refused */
export async function tried(
  tokens: readonly Alterable[],
  { seed, count }: { readonly seed: number; readonly count: number },
): Promise<Trials> {
  const chance = chanceOf(seed);
  const disagreed: string[] = [];
  const reasons = new Map<string, number>();
  let refusedThere = 0;
  for (const token of tokens) {
    if ((await isRefused(token, token.jwt)) || (await token.judge(token.jwt)) !== 'none')
      throw new Error(`a right token is refused: ${token.what}`);
  }
  for (let at = 0; at < count; at += 1) {
    const token = chance.pick(tokens);
    const changed = altered(token.jwt, chance);
    const [there, here] = await Promise.all([isRefused(token, changed), token.judge(changed)]);
    reasons.set(here, (reasons.get(here) ?? 0) + 1);
    if (there) refusedThere += 1;
    if (there && here === 'none') disagreed.push(`change ${at} of seed ${seed}, ${token.what}: ${changed}`);
  }
  return { disagreed, refusedThere, reasons };
}

async function isRefused({ jwk, alg }: Alterable, jwt: string): Promise<boolean> {
  const key = await importJWK({ ...jwk }, alg);
  return compactVerify(jwt, key, { algorithms: [alg] }).then(
    () => false,
    () => true,
  );
}

/** Mostly letters of base64url, so that the change passes the checks of spelling. */
const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];
const OTHERS = [...'.=~+/ "\\\0é'];

function altered(jwt: string, chance: Chance): string {
  const parts = jwt.split('.');
  // Each part equally often, independent of its length.
  const part = chance.below(parts.length);
  const text = parts[part] ?? '';
  const at = chance.below(text.length);
  const from = (chance.happens(0.9) ? LETTERS : OTHERS).filter((letter) => letter !== text[at]);
  return parts.with(part, text.slice(0, at) + chance.pick(from) + text.slice(at + 1)).join('.');
}
