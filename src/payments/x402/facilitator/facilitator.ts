import { createJsonPeer, type JsonAnswer, type JsonPeer, type JsonRequest } from '../chain/http-json.ts';
import type { Proof } from '../wire/rail.ts';
import type { FacilitatorEndpoint } from '../wire/settings.ts';
import type { PaymentRequirements } from '../wire/types.ts';
import {
  facilitatorRequest,
  readSettleAnswer,
  readSupported,
  readVerifyAnswer,
  type SettleAnswer,
  type VerifyAnswer,
} from './facilitator-wire.ts';

/** Largest answer that is read, bytes. */
export const MAX_VERDICT_BYTES = 65_536;
/** Shorter than a look of the readiness monitor, so that one silent facilitator does not hide the others. Milliseconds. */
const SUPPORTED_DEADLINE_MS = 900;

/** One facilitator over HTTP. Never rejects: what gave no verdict is an answer of kind `none`. Deadlines in milliseconds. */
export interface Facilitator {
  /** Its host, for causes: a path may hold a key. */
  readonly name: string;
  /** Asked again once within the deadline when the connection broke. */
  verify(proof: Proof, offer: PaymentRequirements, deadlineMs: number): Promise<VerifyAnswer>;
  /** Asked once. */
  settle(proof: Proof, offer: PaymentRequirements, deadlineMs: number): Promise<SettleAnswer>;
  /** The cause when it cannot serve `exact` on this CAIP-2 network. */
  fault(network: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens no connection before the first question. */
export function connectFacilitator({ url, auth }: FacilitatorEndpoint): Facilitator {
  const peer = createJsonPeer(url, MAX_VERDICT_BYTES);
  const headers = auth.type === 'bearer' ? { authorization: `Bearer ${auth.token}` } : {};
  const ask: JsonPeer['exchange'] = (request) => peer.exchange({ ...request, headers });
  return {
    name: new URL(url).host,
    async verify(proof, offer, deadlineMs) {
      try {
        const body = facilitatorRequest(proof, offer);
        const { status, json } = await askTwice(ask, { method: 'POST', path: '/verify', body, deadlineMs });
        return readVerifyAnswer(status, json, payerOf(proof));
      } catch (error) {
        return { kind: 'none', cause: causeOf(error) };
      }
    },
    async settle(proof, offer, deadlineMs) {
      try {
        const body = facilitatorRequest(proof, offer);
        const { status, json } = await ask({ method: 'POST', path: '/settle', body, deadlineMs });
        return readSettleAnswer(status, json, { payer: payerOf(proof), network: offer.network });
      } catch (error) {
        return { kind: 'none', cause: causeOf(error), unsent: NOT_CONNECTED.has(codeOf(error)) };
      }
    },
    async fault(network) {
      try {
        const { status, json } = await ask({ method: 'GET', path: '/supported', deadlineMs: SUPPORTED_DEADLINE_MS });
        return readSupported(status, json, network);
      } catch (error) {
        return causeOf(error);
      }
    },
    close: () => peer.close(),
  };
}

/** Codes of a kept-alive connection that the other side closed at the wrong moment. */
const BROKEN_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'UND_ERR_SOCKET']);
/** Codes that only a connection gives that was never there. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** A question that moves nothing may be asked again when its connection broke. Never used for `/settle`. */
async function askTwice(ask: JsonPeer['exchange'], request: JsonRequest): Promise<JsonAnswer> {
  const ends = performance.now() + request.deadlineMs;
  try {
    return await ask(request);
  } catch (error) {
    const left = ends - performance.now();
    if (left < 1 || !BROKEN_CONNECTION.has(codeOf(error))) throw error;
    return ask({ ...request, deadlineMs: left });
  }
}

function payerOf(proof: Proof): string {
  return proof.payload.payload.authorization.from;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined;
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  const code = codeOf(error);
  return typeof code === 'string' ? `${code}: ${error.message}` : `${error.name}: ${error.message}`;
}
