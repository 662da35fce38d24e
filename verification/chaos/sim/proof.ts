/** Proofs of the simulation. */

import { type BuyerTokens, TOKEN_CHARACTERS } from '../../../src/payments/pricing/buyer-token.ts';
import type { Candidate, Examination } from '../../../src/payments/x402/verify/verify.ts';
import { encodeProof } from '../../../src/payments/x402/wire/header-codec.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import { BUYER_TOKEN, replayKey } from '../../../src/payments/x402/wire/payload-schema.ts';
import { invalidWindow } from '../../../src/payments/x402/wire/window.ts';
import type { Resource } from '../../../src/resources/resource.ts';
import type { Setting } from './setting.ts';

const ASSET = `0x${'33'.repeat(20)}`;
/** What replay keys are made of. */
export const SCOPE = { chainId: 84_532, asset: ASSET, publicBaseUrl: 'https://shop.example' };
const PAYER = `0x${'11'.repeat(20)}`;
const PAYEE = `0x${'22'.repeat(20)}`;
/** Offered life of an authorization, seconds. */
export const MAX_TIMEOUT_SECONDS = 60;
export const RESOURCE_ID = 'market_report';
/** How long a token opens a delivered answer, milliseconds. */
export const KEEP_ANSWER_MS = 60_000;

const REQUIREMENTS = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '10000',
  asset: ASSET,
  payTo: PAYEE,
  maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
  extra: {},
} as const;
const CHALLENGE = {
  body: '{}',
  header: '',
  leftOut: [],
  document: '{}',
  terse: { document: '{}', tokenOnly: '{}' },
  authorization: undefined,
  refusal: undefined,
  message: '',
};

/** Left of the window of a proof when a call begins that is paid for after its answer, seconds. */
export const LEAST_SECONDS = 12;
/** Behind a dot a token names the payment whose answer waits for its buyer's next proof. */
const ANSWERS = /\.([A-Za-z0-9_-]{43})$/;

/** The payment that a token names. */
export function answerNamed(token: string): string | undefined {
  const name = ANSWERS.exec(token)?.[1];
  return name && Buffer.from(name, 'base64url').toString('hex');
}

/** The one offer of the simulated gateway. */
const OFFER: Offer = {
  requirements: REQUIREMENTS,
  resourceUrl: 'https://shop.example/api/resources/market_report/invoke',
  amount: '0.01',
  currency: 'USDC',
  // Buyers read of a challenge what its token names, and nothing else.
  challenge: { fresh: () => CHALLENGE, refused: ({ token }) => ({ ...CHALLENGE, header: token }) },
  issueToken: (_bind, answerOf) =>
    answerOf === undefined ? '' : `.${Buffer.from(answerOf, 'hex').toString('base64url')}`,
};

/** The offer, with the money before or after the call. */
export function offerOf(settle: Setting['settle']): Offer {
  return settle === 'after' ? { ...OFFER, leastSeconds: LEAST_SECONDS } : OFFER;
}

/** Every token passes: the proof names its buyer, and the simulation does not test forgeries. */
export const TOKENS: Pick<BuyerTokens, 'read'> = {
  read: (text) => ({ text, genuineForMs: 700_000, offeredUntilMs: undefined, answerOf: answerNamed(text) }),
};

/**
 * An authorization as the world knows it: `header` is what a buyer sends, `found` what calldata
 * shows of it.
 */
export interface SignedProof {
  readonly found: string;
  /** The token of the buyer's 402, which no chain shows. */
  readonly token: string;
  readonly nonce: string;
  readonly payId: string;
  /** Unix seconds. */
  readonly validBefore: number;
  readonly header: string;
}

/**
 * Signs a payment; every check accepts the signature, because the simulation does not test
 * signatures. `answerOf`: behind the token, of the 402 that this proof answers.
 */
export function signProof(number: number, nowMs: number, lifeSeconds: number, answerOf = ''): SignedProof {
  const nonce = `0x${number.toString(16).padStart(64, '0')}`;
  const validBefore = Math.floor(nowMs / 1_000) + lifeSeconds;
  const payload = {
    x402Version: 2,
    accepted: REQUIREMENTS,
    payload: {
      signature: `0x${'ab'.repeat(65)}`,
      authorization: {
        from: PAYER,
        to: PAYEE,
        value: REQUIREMENTS.amount,
        validAfter: '0',
        validBefore: String(validBefore),
        nonce,
      },
    },
  } as const;
  const token = `${`token-${number}`.padEnd(TOKEN_CHARACTERS, '_')}${answerOf}`;
  const header = encodeProof({ ...payload, extensions: { [BUYER_TOKEN]: { info: { token } } } });
  return { nonce, payId: payIdOf(nonce), validBefore, header, found: encodeProof(payload), token };
}

/** The local checks without curve and chain: only the time window of a proof. */
export function examine({ decoded, offer, leastSeconds, nowMs }: Candidate): Examination {
  const { payload } = decoded;
  const { authorization } = payload.payload;
  const payId = payIdOf(authorization.nonce);
  const window = invalidWindow(authorization, offer.maxTimeoutSeconds, nowMs, leastSeconds);
  return {
    payId,
    refusal: window === undefined ? undefined : { step: 'window', ...window },
    checkSignature: async () => ({ kind: 'genuine', proof: { payId, payload, signedBy: 'account' } }),
  };
}

/** The one resource. */
export function resourceOf({ method, backendTimeoutMs, mandated }: Setting): Resource {
  return {
    id: RESOURCE_ID,
    name: 'Market report',
    pricing: { type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n },
    exposedVia: ['http'],
    backend: {
      method,
      path: '/report',
      headers: {},
      timeoutMs: backendTimeoutMs,
      maxResponseBytes: 1_000_000,
      idempotent: false,
      relayStatuses: { sold: [], unpaid: [] },
    },
    compile: () => false,
    prepare: () => ({ ok: false, problems: [] }),
    fitsOutput: undefined,
    address: undefined,
    authorization: mandated ? ['ap2'] : [],
  };
}

function payIdOf(nonce: string): string {
  return replayKey({ ...SCOPE, from: PAYER, nonce });
}
