import type { Target, Told } from './story.ts';

/** The offer of a challenge, as far as a buyer signs it. */
export interface Offer {
  readonly network: string;
  readonly amount: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
}

/** A PaymentRequired document. */
export interface Challenge {
  readonly resource: object;
  readonly accepts: readonly [Offer];
}

/** What came back, in the words of a strict client. */
export type Reply =
  | { readonly kind: 'answer'; readonly body: unknown }
  | { readonly kind: 'challenge'; readonly challenge: Challenge; readonly reason: string }
  /** The same request may be sent again, after so many milliseconds. */
  | { readonly kind: 'again'; readonly afterMs: number }
  | { readonly kind: 'told'; readonly told: Told }
  /** No answer, or a part of one. */
  | { readonly kind: 'lost' };

interface Envelope {
  readonly code?: string;
  readonly retryable?: boolean;
  readonly details?: { readonly state?: string; readonly payment?: object };
  readonly error?: { readonly reason: string };
  readonly payment?: { readonly envelope: Challenge };
}

/** One request, milliseconds. Longer than everything the gateway may wait for. */
const PATIENCE_MS = 20_000;

/** Sends a call once. Never rejects. */
export async function send(
  baseUrl: string,
  { resource, input }: Target,
  headers: Readonly<Record<string, string>>,
  abort?: AbortSignal,
): Promise<Reply> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  try {
    const response = await fetch(`${baseUrl}/api/resources/${resource}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ input }),
      signal: abort === undefined ? patience : AbortSignal.any([patience, abort]),
    });
    return replyOf(response.status, response.headers, (await response.json()) as Envelope);
  } catch {
    return { kind: 'lost' };
  }
}

function replyOf(status: number, headers: Headers, body: Envelope): Reply {
  if (status === 200) return { kind: 'answer', body };
  if (status === 402 && body.payment !== undefined)
    return { kind: 'challenge', challenge: body.payment.envelope, reason: body.error?.reason ?? '' };
  if (body.retryable === true) return { kind: 'again', afterMs: Number(headers.get('retry-after') ?? 0) * 1_000 };
  const { code = '', details } = body;
  const hasPayment = details?.payment !== undefined;
  return { kind: 'told', told: { at: Date.now(), status, code, state: details?.state, hasPayment } };
}
