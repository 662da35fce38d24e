/** A gateway whose resources need mandates, and the mint of test mandates. */

import assert from 'node:assert/strict';
import { createPublicKey, verify, type webcrypto } from 'node:crypto';
import type { Ap2Profile, Purchase } from '../../src/mandates/ap2/purchase.ts';
import { PROVIDER } from '../support/ap2/keys.ts';
import { createMint, type Mint } from '../support/ap2/mint.ts';
import type { Presentation, Wishes } from '../support/ap2/wishes.ts';
import type { ConfigObject } from '../support/config.ts';
import type { TestGateway, TestGatewayParts } from '../support/gateway.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import type { Body, Reply } from './mandate-channels.ts';

/** A gateway some of whose resources need mandates, and what makes these mandates. */
export interface MandateSeller extends Testbed {
  readonly mint: Mint;
  /**
   * A mandate for what a challenge asks for, made now, by an agent that pays with the seller's
   * buyer.
   */
  mandateFor(body: Body, wishes?: Wishes): Presentation;
  /** What a call buys, as a mandate sees it; without an id of a payer it is free. */
  purchaseOf(resourceId: string, title: string, input: object, price?: string): Purchase;
  readonly profile: Ap2Profile;
  /** The claims of a receipt, once its signature is found good with the published keys. */
  receiptOf(reply: Reply): Promise<Readonly<Record<string, unknown>>>;
}

export const now = (): number => Math.floor(Date.now() / 1_000);

/** The part of the configuration that trusts the parties of a mint. */
export function trusting({ parties }: Mint, resources: readonly string[], more: ConfigObject = {}): ConfigObject {
  return {
    protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
    authorization: {
      ap2: {
        enabled: true,
        checkout: { signingKey: parties.checkout.pem, kid: parties.checkout.publicJwk.kid },
        issuers: [{ id: PROVIDER, keys: [parties.provider.publicJwk] }],
        ...more,
      },
    },
    resources: Object.fromEntries(resources.map((id) => [id, { authorization: { required: ['ap2'] } }])),
  };
}

/** Opens everything. `resources`: those that need a mandate; `more`: of `authorization.ap2`. */
export async function openMandateSeller(
  resources: readonly string[],
  more: ConfigObject = {},
  parts: Partial<TestGatewayParts> = {},
  mint: Mint = createMint(),
): Promise<MandateSeller> {
  const overrides = { ...trusting(mint, resources, more), ...parts.overrides };
  const testbed = await openTestbed({ ...parts, overrides });
  const { gateway, buyer } = testbed;
  const profile = gateway.config.authorization.ap2?.profile ?? assert.fail('no mandates are accepted');
  const { network = '', asset = '', payTo = '' } = gateway.config.x402 ?? {};
  const purchaseOf = (resourceId: string, title: string, input: object, price?: string): Purchase => ({
    ...{ resourceId, title, input: input as Purchase['input'] },
    price: { amount: price ?? '0', currency: 'TUSD' },
    payment:
      price === undefined
        ? undefined
        : { method: 'x402', network, asset, payTo, payer: buyer.address.toLowerCase(), nonce: undefined },
  });
  return {
    ...testbed,
    mint,
    profile,
    purchaseOf,
    mandateFor(body, wishes = {}) {
      const { checkoutJwt } = body.authorization?.required[0] ?? assert.fail(`no challenge: ${JSON.stringify(body)}`);
      return mint.autonomous({ now: now(), profile, checkoutJwt, ...wishes });
    },
    receiptOf: (reply) => verifiedReceipt(gateway, reply),
  };
}

async function verifiedReceipt(
  gateway: TestGateway,
  { receipt, raw }: Reply,
): Promise<Readonly<Record<string, unknown>>> {
  const [head = '', body = '', signature = ''] = receipt?.split('.') ?? assert.fail(`no receipt: ${raw}`);
  const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as Record<string, string>;
  const answer = await fetch(`${gateway.url}/.well-known/jwks.json`);
  const { keys } = (await answer.json()) as { readonly keys: readonly { readonly kid: string }[] };
  const jwk = keys.find(({ kid }) => kid === header['kid']) ?? assert.fail('the key of receipts is not published');
  const key = createPublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' });
  const good = verify(
    'sha256',
    Buffer.from(`${head}.${body}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  assert.ok(good, 'the signature of the receipt');
  assert.deepEqual([header['alg'], header['typ']], ['ES256', 'ap2-receipt+jwt']);
  return JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
}
