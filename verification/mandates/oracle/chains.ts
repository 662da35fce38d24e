/** Mandates of every kind in every algorithm that both this verifier and `jose` know. */

import { createParties, type Parties } from '../../../spec/support/ap2/keys.ts';
import { createMint } from '../../../spec/support/ap2/mint.ts';
import { type Read, readPresentation } from '../../../spec/support/ap2/oracle.ts';
import { profileWith } from '../../../spec/support/ap2/purchase.ts';
import { verifierFor } from '../../../spec/support/ap2/verifier.ts';
import type { Presentation } from '../../../spec/support/ap2/wishes.ts';

/** Without ES256K, which `jose` does not have. */
export const ALGORITHMS = ['ES256', 'ES384', 'EdDSA'] as const;
export type OracleAlgorithm = (typeof ALGORITHMS)[number];

/** A mandate with one algorithm for all its signers. */
export interface SignedChain {
  readonly kind: string;
  readonly alg: OracleAlgorithm;
  readonly made: Presentation;
  /** Of the checkout mandate, root first, then of the payment mandate, each with its right key. */
  readonly tokens: readonly Read[];
  /** The verifier that trusts its issuers. */
  readonly verify: ReturnType<typeof verifierFor>;
}

/** One of every kind, with fresh keys. */
export function chainsSignedWith(alg: OracleAlgorithm): readonly SignedChain[] {
  const mint = createMint(createParties(alg));
  const verify = verifierFor(mint, { profile: profileWith({ algorithms: new Set([alg]) }) });
  const { provider, bank } = mint.parties;
  const chain = (kind: string, made: Presentation, root: Parties['provider'] = provider): SignedChain => {
    const presented = [made.payload, made.paymentMandate].filter((one) => one !== undefined);
    const tokens = presented.flatMap((presentation) => readPresentation(presentation, pointOf(root)));
    return { kind, alg, made, tokens, verify };
  };
  return [
    chain('autonomous', mint.autonomous()),
    chain('autonomous and paying', mint.autonomous({ payment: true })),
    chain('through a sub-agent, and paying', mint.autonomous({ delegated: true, payment: true })),
    chain('direct and paying', mint.direct({ payment: true })),
    chain('under a credential', mint.credential(), bank),
  ];
}

function pointOf({ publicJwk: { kty, crv, x, y } }: Parties['provider']): Read['jwk'] {
  return { kty, crv, x, ...(y === undefined ? {} : { y }) };
}
