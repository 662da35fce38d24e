import { randomUUID } from 'node:crypto';
import {
  type BackendCall,
  type CheckoutCall,
  createBackendService,
} from '../../../src/adapters/acp/backend-service.ts';
import { type BackendConnection, createExchange } from '../../../src/backend/backend-connection.ts';
import type { FinalAnswer } from '../../../src/checkouts/attempts.ts';
import { OPERATION_RULES, OPERATIONS, type Operation } from '../../../src/checkouts/operations.ts';
import type { AcpBackend } from '../../../src/checkouts/settings.ts';
import type { EventDraft } from '../../../src/events/event.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../../support/acp/checkout-backend.ts';

export interface BackendOptions {
  readonly strictSemantics?: boolean;
  readonly authenticationErrors?: boolean;
  /** Of all operations, or of those named. */
  readonly timeoutMs?: number | Partial<Record<Operation, number>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the sample backend. */
  readonly origin?: string;
  /** Before every path. */
  readonly prefix?: string;
  readonly maxSockets?: number;
}

/** The backend service with a real exchange to the sample backend, and all that it records. */
export interface BackendWorld {
  readonly backend: CheckoutBackend;
  readonly connection: BackendConnection;
  readonly events: readonly EventDraft[];
  readonly receipts: readonly Receipt[];
  /** Documents that were refused, and those that contradicted themselves. */
  readonly invalid: readonly object[];
  readonly contradictions: readonly object[];
  /** Exchanges now. */
  exchanging(): number;
  open(call: Partial<CheckoutCall> & Pick<CheckoutCall, 'operation'>): BackendCall;
  /** The id of a fresh session. */
  session(): Promise<string>;
}

/** The body of a create that the sample backend accepts. */
export const CREATE = '{"line_items":[{"id":"item_1"}],"currency":"usd","capabilities":{}}';
/** The body of a complete with this token. */
export const completeWith = (token = 'tok_1', more: JsonObject = {}): string =>
  JSON.stringify({
    payment_data: { handler_id: 'card', instrument: { type: 'card', credential: { type: 'spt', token } } },
    ...more,
  });

const BODIES: Readonly<Record<Operation, string | undefined>> = {
  createCheckoutSession: CREATE,
  updateCheckoutSession: '{}',
  getCheckoutSession: undefined,
  completeCheckoutSession: completeWith(),
  cancelCheckoutSession: undefined,
};

/** Runs the test with a fresh backend, and stops it in any case. */
export async function withBackend(
  test: (world: BackendWorld) => Promise<void>,
  options: BackendOptions = {},
): Promise<void> {
  const backend = await startCheckoutBackend();
  const origin = options.origin ?? backend.url;
  const connection = createExchange({
    origin,
    reuse: false,
    ...(options.maxSockets === undefined ? {} : { maxSockets: options.maxSockets }),
  });
  const events: EventDraft[] = [];
  const receipts: Receipt[] = [];
  const invalid: object[] = [];
  const contradictions: object[] = [];
  let exchanges = 0;
  const openCall = createBackendService({
    exchange: connection.exchange,
    backend: backendAt(origin, options),
    strictSemantics: options.strictSemantics ?? false,
    authenticationErrors: options.authenticationErrors ?? false,
    events: { push: (event) => void events.push(event), withdraw: () => [] },
    receipts: { push: (receipt) => void receipts.push(receipt) },
    watch: {
      exchanging() {
        exchanges += 1;
        return () => {
          exchanges -= 1;
        };
      },
      invalidDocument: (found) => void invalid.push(found),
      contradiction: (found) => void contradictions.push(found),
    },
  });
  const open: BackendWorld['open'] = (call) => {
    const text = BODIES[call.operation];
    return openCall({
      sessionId: undefined,
      clientId: 'assistant',
      requestId: 'acp_1',
      callId: 'call_1',
      callerRequestId: undefined,
      caller: {},
      body: text === undefined ? undefined : Buffer.from(text),
      contentType: text === undefined ? undefined : 'application/json',
      startedAt: performance.now(),
      ...call,
    });
  };
  const session = async (): Promise<string> => {
    const { id } = documentIn(await write(open({ operation: 'createCheckoutSession' })));
    return String(id);
  };
  try {
    const records = { events, receipts, invalid, contradictions, exchanging: () => exchanges };
    await test({ backend, connection, ...records, open, session });
  } finally {
    await connection.abort();
    await backend.stop();
  }
}

/** How an exchange of a call ended. */
export type End = Awaited<ReturnType<BackendCall['attempt']>>;

/** One attempt; the first one of a key of its own unless given. */
export function write(
  call: BackendCall,
  { backendKey = randomUUID(), number = 1 }: { readonly backendKey?: string; readonly number?: number } = {},
): Promise<End> {
  return call.attempt({ backendKey, number });
}

/** The document of an end that is an answer. */
export function documentIn(end: End): JsonObject {
  if (end.kind !== 'answer') throw new Error(`no answer: ${end.kind}`);
  return bodyOf(end.answer);
}

export function bodyOf({ body }: FinalAnswer): JsonObject {
  return JSON.parse(Buffer.from(body).toString()) as JsonObject;
}

function backendAt(origin: string, { timeoutMs, headers = {}, prefix = '' }: BackendOptions): AcpBackend {
  const entries = OPERATIONS.map((operation) => {
    const rule = OPERATION_RULES[operation];
    const ofOperation = typeof timeoutMs === 'number' ? timeoutMs : timeoutMs?.[operation];
    return [operation, { path: `${prefix}${rule.path}`, timeoutMs: ofOperation ?? rule.timeoutMs }] as const;
  });
  const operations = Object.fromEntries(entries) as unknown as AcpBackend['operations'];
  return { origin, headers, operations, scopesByClient: false };
}
