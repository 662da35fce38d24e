/** A buyer of the simulation. */

import { type BuyerTokens, TOKEN_CHARACTERS } from '../../../src/payments/pricing/buyer-token.ts';
import type { Candidate, Examination } from '../../../src/payments/x402/verify/verify.ts';
import type { Challenge } from '../../../src/payments/x402/wire/challenge.ts';
import type { Offer } from '../../../src/payments/x402/wire/offers.ts';
import { BUYER_TOKEN, encodeProof, invalidWindow, replayKey } from '../../../src/payments/x402/wire/proof.ts';
import type { Resource } from '../../../src/resources/resource.ts';
import type { Reply } from './merchant.ts';
import type { Setting } from './world.ts';

/** One purchase, with the proofs signed for it so far. Copies of a call share it. */
export class Purchase {
  readonly proofs: SignedProof[] = [];
  readonly #sign: (answerOf?: string) => SignedProof;

  constructor(sign: (answerOf?: string) => SignedProof) {
    this.#sign = sign;
    this.proofs.push(sign());
  }

  get proof(): SignedProof {
    const last = this.proofs.at(-1);
    if (last === undefined) throw new Error('a purchase without a proof');
    return last;
  }

  /** After a 402 for `refused`: a new payment, unless another copy has signed it already. */
  signAnew(refused: SignedProof, answerOf: string): void {
    if (this.proof === refused) this.proofs.push(this.#sign(answerOf));
  }
}

/** Signs proofs with growing numbers, so that a run is the same every time. */
export function signer(now: () => number, lifeSeconds: () => number, onSigned: (proof: SignedProof) => void) {
  let signed = 0;
  return (answerOf?: string): SignedProof => {
    signed += 1;
    const proof = signProof(signed, now(), lifeSeconds(), answerOf);
    onSigned(proof);
    return proof;
  };
}

/** How a buyer's call ended, named as in contract 4.3; `open` while it may try again. */
export type Ending =
  | 'open'
  | 'answered'
  | 'delivered'
  | 'undelivered'
  | 'refundDue'
  | 'used'
  | 'conflict'
  | 'challenged';

/**
 * A buyer, which repeats a call as the strictest client does: the same proof on anything but 402, a
 * new one on 402 alone.
 */
export interface BuyerPlan {
  readonly name: string;
  readonly purchase: Purchase;
  readonly input: string;
  readonly key: string | undefined;
  /** False for a client that only found the proof. */
  readonly mayPay: boolean;
  /** Which gateway is asked first. */
  readonly gateway: number;
  readonly startMs: number;
}

/** What a buyer can do. */
interface BuyerPorts {
  /** One attempt; resolves with what came back, at the latest when the buyer disconnects. */
  send(buyer: BuyerPlan, proof: SignedProof, gateway: number): Promise<Reply>;
  sleep(ms: number): Promise<void>;
}

/** Milliseconds. */
const AFTER_RESET = 300;
const AFTER_BUSY = 1_000;
const AFTER_FAILURE = 2_000;

/** Buys, until there is a definite end or `attempts` are used up. */
export async function buy(buyer: BuyerPlan, ports: BuyerPorts, attempts: number): Promise<Ending> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { proof } = buyer.purchase;
    const reply = await ports.send(buyer, proof, buyer.gateway + attempt);
    const ending = endingOf(reply);
    if (ending !== 'open' && ending !== 'challenged') return ending;
    if (reply.kind === 'challenge') {
      if (!buyer.mayPay) return 'challenged';
      buyer.purchase.signAnew(proof, reply.answerOf);
    } else await ports.sleep(pauseAfter(reply));
  }
  return 'open';
}

function endingOf(reply: Reply): Ending {
  switch (reply.kind) {
    case 'answer':
      return 'answered';
    case 'challenge':
      return 'challenged';
    case 'reset':
      return 'open';
    case 'failed':
      return failedEnding(reply);
  }
}

function failedEnding({ code, retryable, details }: Extract<Reply, { kind: 'failed' }>): Ending {
  if (code === 'IDEMPOTENCY_CONFLICT') return 'conflict';
  const state = details?.state;
  if (code === 'BACKEND_ERROR') return retryable ? 'open' : 'undelivered';
  if (code !== 'PAYMENT_REPLAYED') return 'open';
  return state === 'used' || state === 'delivered' || state === 'undelivered' || state === 'refundDue' ? state : 'open';
}

function pauseAfter(reply: Reply): number {
  if (reply.kind === 'reset') return AFTER_RESET;
  return reply.kind === 'failed' && reply.code === 'PAYMENT_REPLAYED' ? AFTER_BUSY : AFTER_FAILURE;
}

const ASSET = `0x${'33'.repeat(20)}`;
/** What replay keys are made of. */
export const SCOPE = { chainId: 84_532, asset: ASSET, publicBaseUrl: 'https://shop.example' };
const PAYER = `0x${'11'.repeat(20)}`;
const PAYEE = `0x${'22'.repeat(20)}`;
/** Offered life of an authorization, seconds. */
const MAX_TIMEOUT_SECONDS = 60;
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
const PRICE = { requirements: REQUIREMENTS, amount: '0.01', currency: 'USDC' } as const;
const CHALLENGE: Challenge = {
  shown: [PRICE],
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
  ...PRICE,
  resourceUrl: 'https://shop.example/api/resources/market_report/invoke',
  ...{ entry: 0, decimals: 6, others: [], isLowest: false, followsInput: false },
  // Buyers read of a challenge what its token names, and nothing else.
  challenge: {
    shown: [PRICE],
    lastsSeconds: 60,
    fresh: () => CHALLENGE,
    refused: ({ token }) => ({ ...CHALLENGE, header: token }),
  },
  issueToken: (_bind, answerOf) =>
    answerOf === undefined ? '' : `.${Buffer.from(answerOf, 'hex').toString('base64url')}`,
};

/** The offer, with the money before or after the call. */
export function offerOf(settle: Setting['settle']): Offer {
  return settle === 'after' ? { ...OFFER, leastSeconds: LEAST_SECONDS } : OFFER;
}

/** Every token passes: the proof names its buyer, and the simulation does not test forgeries. */
export const TOKENS: Pick<BuyerTokens, 'read'> = {
  read(text) {
    return {
      ...{ text, genuineForMs: 700_000, offeredUntilMs: undefined },
      answerOf: answerNamed(text),
      boundTo: undefined,
    };
  },
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
function signProof(number: number, nowMs: number, lifeSeconds: number, answerOf = ''): SignedProof {
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
