/** Sends a call over each channel and reads the answer as a strict client does. */

import { randomUUID } from 'node:crypto';
import { PATHS } from './fleet.ts';
import type { Refusal, Target } from './story.ts';

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
  readonly accepts: readonly [Offer, ...Offer[]];
  /** The buyer's token among them. */
  readonly extensions?: object;
}

/** What came back, as a strict client reads it. */
export type Reply =
  | { readonly kind: 'answer'; readonly body: unknown }
  | { readonly kind: 'challenge'; readonly challenge: Challenge; readonly reason: string }
  /** The same request may be sent again, after so many milliseconds. */
  | { readonly kind: 'again'; readonly afterMs: number }
  | { readonly kind: 'refusal'; readonly refusal: Refusal }
  /** No answer, or a part of one. */
  | { readonly kind: 'lost' };

/** How a call comes: in a protocol's message, or to the backend's own address. */
export const CHANNELS = ['http', 'mcp', 'a2a', 'origin'] as const;
export type Channel = (typeof CHANNELS)[number];

interface Envelope {
  readonly code?: string;
  readonly retryable?: boolean;
  readonly details?: { readonly state?: string; readonly payment?: object };
  readonly error?: { readonly reason: string };
  /** The same over MCP, where `error` is x402's own. */
  readonly refusal?: { readonly reason: string };
  readonly payment?: { readonly envelope: Challenge };
}

/** Timeout of one request, milliseconds: longer than all waits of the gateway. */
const PATIENCE_MS = 20_000;

/** Sends a call once. Never rejects. */
export async function send(
  baseUrl: string,
  target: Target,
  headers: Readonly<Record<string, string>>,
  channel: Channel,
  abort?: AbortSignal,
): Promise<Reply> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const { method = 'POST', path, extra, body, read } = MESSAGES[channel](target);
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...extra, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: abort === undefined ? patience : AbortSignal.any([patience, abort]),
    });
    const answer: unknown = await response.json();
    // A refusal before the body is read has the HTTP envelope on every channel.
    const { status, document } = response.status === 200 ? read(answer) : { status: response.status, document: answer };
    return replyOf(status, response.headers, document as Envelope);
  } catch {
    return { kind: 'lost' };
  }
}

/** A call in the form of a protocol, and a function that reads its answer as an HTTP answer. */
interface Message {
  /** POST unless given. */
  readonly method?: 'GET';
  readonly path: string;
  readonly extra: Readonly<Record<string, string>>;
  readonly body: object | undefined;
  read(answer: unknown): { readonly status: number; readonly document: unknown };
}

const MESSAGES: Readonly<Record<Channel, (target: Target) => Message>> = {
  http: ({ resource, input }) => ({
    path: `/api/resources/${resource}/invoke`,
    extra: {},
    body: { input },
    read: (document) => ({ status: 200, document }),
  }),
  origin: ({ resource, input }) => ({
    ...addressed(resource, input),
    extra: {},
    read: (document) => ({ status: 200, document }),
  }),
  mcp: ({ resource, input }) => ({
    path: '/mcp',
    extra: { accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: resource, arguments: { input } } },
    read(answer) {
      const { isError, structuredContent: document } = (answer as { result: Result }).result;
      // The terms stand beside the code, not in an envelope.
      const asked = document.code === 'PAYMENT_REQUIRED' ? { payment: { envelope: document } } : {};
      return { status: isError === true ? statusOf(document) : 200, document: { ...document, ...asked } };
    },
  }),
  a2a: ({ resource, input }) => ({
    path: '/a2a',
    extra: { 'a2a-version': '1.0' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: {
          role: 'ROLE_USER',
          messageId: randomUUID(),
          parts: [{ data: { resource, input: { input } }, mediaType: 'application/json' }],
        },
      },
    },
    read(answer) {
      const { task } = (answer as { result: { task: Task } }).result;
      const document = task.artifacts[0].parts[0].data;
      return { status: task.status.state === 'TASK_STATE_COMPLETED' ? 200 : statusOf(document), document };
    },
  }),
};

/** A call at the backend's own address, as fleet.ts sells it. */
function addressed(resource: Target['resource'], input: string): Pick<Message, 'method' | 'path' | 'body'> {
  const path = `/${PATHS[resource]}`;
  return resource.endsWith('report')
    ? { method: 'GET', path: `${path}/${encodeURIComponent(input)}`, body: undefined }
    : { path, body: { input } };
}

interface Result {
  readonly isError?: boolean;
  readonly structuredContent: Envelope;
}

interface Task {
  readonly status: { readonly state: string };
  readonly artifacts: readonly [{ readonly parts: readonly [{ readonly data: Envelope }] }];
}

/** The HTTP statuses that a buyer handles one by one; for others `retryable` decides. */
const STATUSES: Readonly<Record<string, number>> = {
  PAYMENT_REQUIRED: 402,
  PAYMENT_REPLAYED: 409,
  IDEMPOTENCY_CONFLICT: 409,
  BACKEND_ERROR: 502,
  PAYMENT_SETTLEMENT_FAILED: 502,
};

function statusOf({ code = '' }: Envelope): number {
  return STATUSES[code] ?? 500;
}

function replyOf(status: number, headers: Headers, body: Envelope): Reply {
  if (status === 200) return { kind: 'answer', body };
  if (status === 402 && body.payment !== undefined) {
    const { reason = '' } = body.refusal ?? ((typeof body.error === 'object' ? body.error : {}) as { reason?: string });
    return { kind: 'challenge', challenge: body.payment.envelope, reason };
  }
  if (body.retryable === true) return { kind: 'again', afterMs: Number(headers.get('retry-after') ?? 0) * 1_000 };
  const { code = '', details } = body;
  const hasPayment = details?.payment !== undefined;
  return { kind: 'refusal', refusal: { at: Date.now(), status, code, state: details?.state, hasPayment } };
}
