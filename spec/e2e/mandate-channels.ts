/** A call with a payment and a mandate, in the words of each channel. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { isResult } from '../adapters/a2a/post.ts';
import type { TestGateway } from '../support/gateway.ts';
import { callInPlace } from '../support/in-place.ts';

/** One call, before it is put in the words of a channel. */
export interface Call {
  readonly resourceId: string;
  readonly input: object;
  readonly proof?: string;
  /** The value of the header. */
  readonly mandate?: string;
  /** A mandate in the input, where the channel has a member for it. */
  readonly inside?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of `_meta`, where the channel has one. */
  readonly meta?: object;
}

/** The answer, read from the words of its channel. */
export interface Reply {
  /** Undefined: delivered. */
  readonly code: string | undefined;
  readonly body: Body;
  /** The signed receipt of the mandate. */
  readonly receipt: string | undefined;
  readonly requestId: string;
  readonly headers: Headers;
  readonly raw: string;
}

/** Of a challenge, an error or a delivery. */
export interface Body {
  readonly code?: string;
  readonly message?: string;
  readonly payment?: { readonly envelope: { readonly extensions?: Readonly<Record<string, unknown>> } };
  readonly authorization?: { readonly required: readonly [Required] };
  readonly details?: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

/** The entry of a challenge for AP2. */
export interface Required {
  readonly checkoutJwt: string;
  readonly nonce: string;
  readonly [name: string]: unknown;
}

/** Sends one call over one channel. */
export type Send = (gateway: TestGateway, call: Call) => Promise<Reply>;

const RECEIPT = 'agent-commerce/authorizationReceipt';
const MANDATE = 'agent-authorization';

/**
 * The three channels; those that speak JSON-RPC carry the mandate in the input unless the header is
 * asked for.
 */
export const CHANNELS: Readonly<Record<'http' | 'mcp' | 'a2a', Send>> = {
  async http(gateway, { resourceId, input, proof, mandate, headers = {} }) {
    const answer = await gateway.invoke(resourceId, input, {
      ...(proof === undefined ? {} : { 'payment-signature': proof }),
      ...(mandate === undefined ? {} : { [MANDATE]: mandate }),
      ...headers,
    });
    const raw = await answer.text();
    const receipt = answer.headers.get('agent-authorization-receipt') ?? undefined;
    return reply(answer, raw, JSON.parse(raw) as Body, receipt, answer.status >= 400);
  },
  async mcp(gateway, { resourceId, input, proof, mandate, inside = mandate, headers = {}, meta = {} }) {
    const { answer, raw, result } = await rpc(gateway, '/mcp', headers, 'tools/call', {
      name: resourceId,
      arguments: { ...input, ...(inside === undefined ? {} : { _authorization: inside }) },
      _meta: { ...meta, ...(proof === undefined ? {} : { 'x402/payment': proof }) },
    });
    const { structuredContent, isError, _meta } = result as McpResult;
    // The terms stand beside the code, not in an envelope.
    const asked = 'accepts' in structuredContent ? { payment: { envelope: structuredContent } } : {};
    const body = { ...structuredContent, ...asked } as Body;
    return reply(answer, raw, body, _meta?.[RECEIPT] as string | undefined, isError === true);
  },
  async a2a(gateway, { resourceId, input, proof, mandate, inside = mandate, headers = {} }) {
    const data = {
      resource: resourceId,
      input: { ...input, ...(inside === undefined ? {} : { _authorization: inside }) },
    };
    const { answer, raw, result } = await rpc(gateway, '/a2a', { 'a2a-version': '1.0', ...headers }, 'SendMessage', {
      message: {
        messageId: randomUUID(),
        role: 'ROLE_USER',
        parts: [{ data, mediaType: 'application/json' }],
        ...(proof === undefined ? {} : { metadata: { 'x402.payment.payload': proof } }),
      },
    });
    assert.ok(isResult(result), JSON.stringify(isResult.errors));
    const { task } = result as A2aResult;
    const failed = task.status.state !== 'TASK_STATE_COMPLETED';
    const body = task.artifacts[0].parts[0].data;
    return reply(answer, raw, body, task.metadata[RECEIPT] as string | undefined, failed);
  },
};

/** The same, and sales in place, which take no mandate here. */
export const WITH_IN_PLACE: Readonly<Record<string, Send>> = {
  ...CHANNELS,
  async origin(gateway, { resourceId, input, proof = '', headers }) {
    const answer = await callInPlace(gateway, resourceId, input, { ...headers, 'payment-signature': proof });
    const raw = await answer.text();
    return reply(answer, raw, JSON.parse(raw) as Body, undefined, answer.status >= 400);
  },
};

interface McpResult {
  readonly structuredContent: Body;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

interface A2aResult {
  readonly task: {
    readonly status: { readonly state: string };
    readonly artifacts: readonly [{ readonly parts: readonly [{ readonly data: Body }] }];
    readonly metadata: Readonly<Record<string, unknown>>;
  };
}

function reply(answer: Response, raw: string, body: Body, receipt: string | undefined, failed: boolean): Reply {
  const requestId = answer.headers.get('x-request-id') ?? '';
  return { code: failed ? body.code : undefined, body, receipt, requestId, headers: answer.headers, raw };
}

async function rpc(
  gateway: TestGateway,
  path: string,
  headers: Readonly<Record<string, string>>,
  method: string,
  params: object,
): Promise<{ readonly answer: Response; readonly raw: string; readonly result: unknown }> {
  const answer = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const raw = await answer.text();
  const { result } = JSON.parse(raw) as { readonly result?: unknown };
  if (result === undefined) throw new Error(`no result: ${raw}`);
  return { answer, raw, result };
}
