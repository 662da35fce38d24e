import type { Chain } from './chain.ts';
import { confirmPayment } from './confirm.ts';
import { evidenceQuery, paysOffer, readingOf } from './evidence-query.ts';
import {
  facilitatorRequest,
  readSettleAnswer,
  readSupported,
  readVerifyAnswer,
  type SettleAnswer,
} from './facilitator-wire.ts';
import { createJsonPeer, type JsonAnswer, type JsonRequest } from './http-json.ts';
import type { PaymentRail, Proof, RailVerdict, Reading, Settlement } from './rail.ts';
import { NONCE_ALREADY_USED, refusedBeforeBroadcast, saysNonceSpent } from './reasons.ts';
import type { FacilitatorConfig } from './settings.ts';
import { VALID_BEFORE_MARGIN_SECONDS } from './window.ts';
import type { PaymentRequirements } from './wire.ts';

/** Deadlines of CONTRACT 4.2, milliseconds. */
export const VERIFY_DEADLINE_MS = 5_000;
export const SETTLE_DEADLINE_MS = 60_000;
const SUPPORTED_DEADLINE_MS = 3_000;
/** Largest answer that is read, bytes. */
export const MAX_VERDICT_BYTES = 65_536;
/** How long the chain may take to show what the facilitator claims, milliseconds. */
export const CONFIRM_DEADLINE_MS = 10_000;
/** A look at the chain that must not keep a refused buyer waiting, milliseconds. */
const GLANCE_DEADLINE_MS = 1_500;

export interface RemoteRailDeps {
  readonly facilitator: Extract<FacilitatorConfig, { readonly mode: 'remote' }>;
  /** CAIP-2, for the readiness check. */
  readonly network: string;
  /** Undefined without an RPC URL: then the facilitator's word has to do where CONTRACT 4.3 says so. */
  readonly chain: Chain | undefined;
  readonly now?: () => number;
  /** Shorter in tests of deadlines. */
  readonly deadlines?: { readonly verifyMs: number; readonly settleMs: number; readonly confirmMs: number };
}

const DEADLINES = { verifyMs: VERIFY_DEADLINE_MS, settleMs: SETTLE_DEADLINE_MS, confirmMs: CONFIRM_DEADLINE_MS };

/** The rail with no key in the gateway: a facilitator over HTTP. It may say no; what it claims is checked where that is possible. */
export function createRemoteRail(deps: RemoteRailDeps): PaymentRail & { close(): Promise<void> } {
  const { facilitator, network, chain, now = Date.now, deadlines = DEADLINES } = deps;
  const peer = createJsonPeer(facilitator.url, MAX_VERDICT_BYTES);
  const { auth } = facilitator;
  const headers = auth.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {};
  const ask = (request: JsonRequest): Promise<JsonAnswer> => peer.exchange({ ...request, headers });

  return {
    facilitator: 'remote',
    seesChain: chain !== undefined,
    async verify(proof, offer) {
      if (!paysOffer(proof, offer)) return refusedVerdict('invalid_payment_requirements', false);
      const body = facilitatorRequest(proof, offer);
      try {
        const { status, json } = await askTwice(ask, { path: '/verify', body, deadlineMs: deadlines.verifyMs });
        const answer = readVerifyAnswer(status, json, payerOf(proof));
        if (answer.kind === 'valid') return answer;
        if (answer.kind === 'none') return { kind: 'unavailable', cause: answer.cause };
        return await refusedByFacilitator(answer.reason, proof, offer, chain);
      } catch (error) {
        return { kind: 'unavailable', cause: causeOf(error) };
      }
    },

    async settle(proof, offer, _writeAhead, history = { sentBefore: false }) {
      // Nothing is sent; not "refused", because what an earlier attempt sent is unknown here.
      if (!paysOffer(proof, offer)) return { kind: 'uncertain', cause: 'the authorization does not pay this offer' };
      const body = facilitatorRequest(proof, offer);
      const ends = performance.now() + deadlines.settleMs;
      let answer: SettleAnswer;
      try {
        const { status, json } = await ask({ method: 'POST', path: '/settle', body, deadlineMs: deadlines.settleMs });
        answer = readSettleAnswer(status, json, { payer: payerOf(proof), network: offer.network });
      } catch (error) {
        answer = { kind: 'none', cause: causeOf(error) };
      }
      if (chain === undefined) return takenAtItsWord(answer, history.sentBefore);
      const { cause, transaction } = unproven(answer);
      const waitMs = transaction === undefined ? 0 : Math.min(deadlines.confirmMs, ends - performance.now());
      return confirmPayment(chain, evidenceQuery(proof, offer, transaction), waitMs, cause);
    },

    async reconcile(proof, offer, knownTransaction): Promise<Reading> {
      if (chain !== undefined) return readingOf(chain, evidenceQuery(proof, offer, knownTransaction));
      const left = Number(proof.payload.payload.authorization.validBefore) - now() / 1_000;
      // The nonce is the chain's own idempotency key: the same payload settles at most once, so it may be sent again.
      if (left >= VALID_BEFORE_MARGIN_SECONDS) return { kind: 'open' };
      return { kind: 'unknown', cause: 'there is no RPC URL to ask the chain' };
    },

    async check() {
      try {
        const supported = await ask({ method: 'GET', path: '/supported', deadlineMs: SUPPORTED_DEADLINE_MS });
        const fault = readSupported(supported.status, supported.json, network);
        // A settlement that no chain confirms is no settlement: without its node this provider cannot be used.
        if (fault === undefined) await chain?.head();
        return fault;
      } catch (error) {
        return causeOf(error);
      }
    },
    close: () => peer.close(),
  };
}

/** Without a chain to ask: a claim counts, and a definite refusal counts when nothing was sent before. Everything else is open. */
function takenAtItsWord(answer: SettleAnswer, sentBefore: boolean): Settlement {
  if (answer.kind === 'claimed') return { kind: 'settled', transaction: answer.transaction };
  const definite =
    answer.kind === 'denied' && !answer.namedTransaction && !sentBefore && refusedBeforeBroadcast(answer.reason);
  if (definite) return { kind: 'refused', reason: answer.reason };
  const { cause, transaction } = unproven(answer);
  return { kind: 'uncertain', cause, ...(transaction === undefined ? {} : { transaction }) };
}

/** What to say, and where to look, if the chain does not decide. */
function unproven(answer: SettleAnswer): { readonly cause: string; readonly transaction: string | undefined } {
  switch (answer.kind) {
    case 'claimed':
      return { cause: 'claimed by the facilitator, not shown by the chain', transaction: answer.transaction };
    case 'denied':
      return { cause: `the facilitator said ${answer.reason}`, transaction: answer.transaction };
    case 'none':
      return { cause: answer.cause, transaction: answer.transaction };
  }
}

/**
 * Any refusal may hide a spent nonce: who has just paid us may well have nothing left, and not everybody looks for the true reason.
 * With a chain to ask, only what it shows makes a refusal; a chain that does not answer leaves the question open.
 */
async function refusedByFacilitator(
  reason: string,
  proof: Proof,
  offer: PaymentRequirements,
  chain: Chain | undefined,
): Promise<RailVerdict> {
  if (chain === undefined || saysNonceSpent(reason)) return refusedVerdict(reason, saysNonceSpent(reason));
  const evidence = await chain.readEvidence(evidenceQuery(proof, offer), GLANCE_DEADLINE_MS);
  switch (evidence.kind) {
    case 'paid':
      return refusedVerdict(NONCE_ALREADY_USED, true);
    case 'unknown':
      return { kind: 'unavailable', cause: `refused (${reason}), and the chain does not show why: ${evidence.cause}` };
    case 'worthless':
      return refusedVerdict(evidence.reason, false);
    case 'open':
      return refusedVerdict(reason, false);
  }
}

function refusedVerdict(reason: string, nonceSpent: boolean): RailVerdict {
  return { kind: 'refused', reason, nonceSpent };
}

/** Codes of a kept-alive connection that the other side closed at the wrong moment. */
const BROKEN_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'UND_ERR_SOCKET']);

/** A question that moves nothing may be asked again when its connection broke. Never used for `/settle`. */
async function askTwice(
  ask: (request: JsonRequest) => Promise<JsonAnswer>,
  request: Omit<JsonRequest, 'method'>,
): Promise<JsonAnswer> {
  const ends = performance.now() + request.deadlineMs;
  try {
    return await ask({ ...request, method: 'POST' });
  } catch (error) {
    const left = ends - performance.now();
    if (left < 1 || !BROKEN_CONNECTION.has((error as { code?: unknown }).code)) throw error;
    return ask({ ...request, method: 'POST', deadlineMs: left });
  }
}

function payerOf(proof: Proof): string {
  return proof.payload.payload.authorization.from;
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `${code}: ${error.message}` : `${error.name}: ${error.message}`;
}
