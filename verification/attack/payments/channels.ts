/** A call with a proof over each channel, with one form of answer. */

import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { message, sendMessage } from '../../../spec/adapters/a2a/post.ts';
import { decode } from '../../../spec/e2e/proofs.ts';
import { CURRENCY } from '../../../spec/support/config.ts';
import { inPlaceRequest, soldInPlace } from '../../../spec/support/in-place.ts';
import type { Testbed } from '../../../spec/support/testbed.ts';

/** The channels over which the same resource is sold. */
export const CHANNELS = ['http', 'mcp', 'a2a', 'origin'] as const;
export type Channel = (typeof CHANNELS)[number];
/** Those on which the input is a message, whatever the address of the operation. */
export const MESSAGE_CHANNELS = ['http', 'mcp', 'a2a'] as const;
/** The configuration that sells the sample resources over all of them. */
export const ALL_CHANNELS = {
  protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
  resources: soldInPlace(CURRENCY),
} as const;

/** One call of an agent. */
export interface Purchase {
  readonly resourceId: string;
  readonly input?: unknown;
  /** The value of a PAYMENT-SIGNATURE. */
  readonly proof?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The parts of an answer that an agent can see. */
export interface Seen {
  /**
   * `cut`: the connection broke before the answer was whole. `error`: JSON-RPC refused the message.
   */
  readonly outcome: 'delivered' | 'failed' | 'asked' | 'cut' | 'error';
  readonly status: number;
  /** Of the gateway's own envelope; undefined for what was delivered. */
  readonly code: string | undefined;
  readonly reason: string | undefined;
  readonly state: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  /** Delivered bytes, taken out of their envelope. */
  readonly bytes: Buffer;
  /** Header names in lower case. */
  readonly names: readonly string[];
  /** Status line's reason, header lines, body and trailers: none may hold a secret. */
  readonly everything: string;
  readonly requestId: string;
}

interface Wired {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly requestId: string;
  readonly body: Buffer;
  readonly whole: boolean;
  readonly everything: string;
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Calls a resource over a channel, on a connection of its own. A connection that ends without an
 * answer is `cut` like any other.
 */
export async function buy(base: string, channel: Channel, call: Purchase): Promise<Seen> {
  const wired = await post(base, channel, call);
  return channel === 'http' || channel === 'origin' ? seenOverHttp(wired) : seenInJson(wired, channel);
}

const PATHS = { mcp: '/mcp', a2a: '/a2a' } as const;

function post(
  base: string,
  channel: Channel,
  { resourceId, input = {}, proof, headers = {} }: Purchase,
): Promise<Wired> {
  const type = { 'content-type': 'application/json' };
  const payment = proof === undefined ? {} : { 'payment-signature': proof };
  if (channel === 'origin') {
    const { method, target, body } = inPlaceRequest(resourceId, input);
    const typed = body === undefined ? {} : type;
    return exchange(`${base}${target}`, { ...typed, ...payment, ...headers }, body, method);
  }
  if (channel === 'http') {
    return exchange(`${base}/api/resources/${resourceId}/invoke`, { ...type, ...payment, ...headers }, input);
  }
  if (channel === 'mcp') {
    const _meta = proof === undefined ? {} : { 'x402/payment': proof };
    const params = { name: resourceId, arguments: input, _meta };
    return exchange(
      `${base}${PATHS.mcp}`,
      { ...type, ...headers },
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    );
  }
  // Ids this short are not deduplicated: every purchase is a message of its own.
  const metadata = proof === undefined ? {} : { 'x402.payment.payload': readable(proof) };
  const content = message(resourceId, input, { messageId: randomUUID().slice(0, 15), metadata });
  return exchange(`${base}${PATHS.a2a}`, { ...type, 'a2a-version': '1.0', ...headers }, sendMessage(content));
}

/** A proof as the object that A2A carries; other text stays text. */
function readable(proof: string): unknown {
  try {
    return decode(proof);
  } catch {
    return proof;
  }
}

/** `body`: text as it is, everything else as JSON. */
function exchange(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  method = 'POST',
): Promise<Wired> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      // `complete` below reports it.
      response.on('error', () => undefined);
      response.on('close', () => {
        const { statusCode: status = 0, statusMessage, rawHeaders, rawTrailers, complete: whole } = response;
        const bytes = Buffer.concat(chunks);
        const everything = [statusMessage, ...rawHeaders, ...rawTrailers, bytes.toString('latin1')].join('\n');
        const requestId = String(response.headers['x-request-id']);
        resolve({ status, rawHeaders, requestId, body: bytes, whole, everything });
      });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') resolve(NOTHING);
      else reject(error);
    });
    request.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** The result when the connection ended before a byte of an answer. */
const NOTHING: Wired = {
  status: 0,
  rawHeaders: [],
  requestId: '',
  body: Buffer.alloc(0),
  whole: false,
  everything: '',
};

function seenOverHttp(wired: Wired): Seen {
  const { status, body, whole } = wired;
  if (!whole) return seen(wired, 'cut');
  if (status >= 200 && status < 300) return seen(wired, 'delivered', {}, body);
  const envelope = JSON.parse(body.toString()) as Members;
  return seen(wired, status === 402 ? 'asked' : 'failed', envelope);
}

function seenInJson(wired: Wired, channel: 'mcp' | 'a2a'): Seen {
  if (!wired.whole) return seen(wired, 'cut');
  const answer = JSON.parse(wired.body.toString()) as Members;
  // Refused before it was read: the gateway knows no message then.
  if (wired.status === 503 && answer['code'] === 'GATEWAY_BUSY') return seen(wired, 'failed', answer);
  const envelope = Object.keys(answer).join();
  if (envelope === 'jsonrpc,id,error') return seen(wired, 'error', { details: answer['error'] });
  // JSON of a backend must not add a member to the message around it.
  if (envelope !== 'jsonrpc,id,result') throw new Error(`a JSON-RPC message of ${envelope}`);
  return channel === 'mcp'
    ? seenInTool(wired, answer['result'] as Tool)
    : seenInTask(wired, answer['result'] as Result);
}

interface Tool {
  readonly isError?: boolean;
  readonly structuredContent?: Members;
  readonly content: readonly {
    readonly text?: string;
    readonly data?: string;
    readonly resource?: { readonly blob: string };
  }[];
}

function seenInTool(wired: Wired, { isError, structuredContent = {}, content }: Tool): Seen {
  const [block] = content;
  if (isError !== true) {
    const base64 = block?.resource?.blob ?? block?.data;
    const bytes = base64 === undefined ? Buffer.from(block?.text ?? '') : Buffer.from(base64, 'base64');
    return seen(wired, 'delivered', {}, bytes);
  }
  const refusal = structuredContent['refusal'];
  if (structuredContent['accepts'] === undefined) return seen(wired, 'failed', structuredContent);
  return seen(wired, 'asked', refusal === undefined ? structuredContent : { ...structuredContent, error: refusal });
}

interface Result {
  readonly task: {
    readonly status: { readonly state: string };
    readonly artifacts: readonly [{ readonly parts: readonly [{ readonly data: Members }] }];
  };
}

function seenInTask(wired: Wired, { task }: Result): Seen {
  const { data } = task.artifacts[0].parts[0];
  if (task.status.state !== 'TASK_STATE_COMPLETED')
    return seen(wired, data['code'] === 'PAYMENT_REQUIRED' ? 'asked' : 'failed', data);
  const { value, encoding } = data;
  if (encoding === 'base64') return seen(wired, 'delivered', {}, Buffer.from(String(value), 'base64'));
  if (typeof value === 'string') return seen(wired, 'delivered', {}, Buffer.from(value));
  // The backend's own spelling, from the message that it was inserted into.
  const [, spelled = ''] = /"parts":\[\{"data":(.*?),"mediaType"/s.exec(wired.body.toString()) ?? [];
  return seen(wired, 'delivered', {}, Buffer.from(value === null ? '' : spelled));
}

function seen(wired: Wired, outcome: Seen['outcome'], envelope: Members = {}, bytes: Buffer = Buffer.alloc(0)): Seen {
  const details = (envelope['details'] ?? {}) as Members;
  const refusal = (typeof envelope['error'] === 'object' ? envelope['error'] : {}) as Members | null;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  return {
    outcome,
    status: wired.status,
    code: text(envelope['code']),
    reason: text(details['reason']) ?? text(refusal?.['reason']),
    state: text(details['state']),
    details,
    bytes,
    names: wired.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
    everything: wired.everything,
    requestId: wired.requestId,
  };
}

/** What an action caused: units paid to the merchant, requests sent to the backend. */
export async function causedBy(
  testbed: Pick<Testbed, 'income' | 'backend'>,
  action: () => Promise<void>,
): Promise<readonly [units: bigint, executions: number]> {
  const [income, executions] = [await testbed.income(), testbed.backend.requests.length];
  await action();
  return [(await testbed.income()) - income, testbed.backend.requests.length - executions];
}
