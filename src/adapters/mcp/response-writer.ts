/** Writes outcomes as results of `tools/call` (mcp 5), in the form of the caller's era. */

import type { Response } from 'express';
import { errorEnvelope } from '../../errors.ts';
import { isObject, type Json } from '../../json/json.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { Resource } from '../../resources/resource.ts';
import type { AnswerBudget } from '../../server/limits/load-shedding.ts';
import { type AnswerContent, MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import {
  annotationMembers,
  deliveryMember,
  errorText,
  INVALID_PARAMS,
  type Members,
  membersText,
  type RpcId,
  resultText,
  sendRpc,
  sendRpcWatched,
} from '../json-rpc/message.ts';
import { type Era, META_SERVER_INFO } from './parse-request.ts';
import type { ServerInfo } from './tools.ts';

/** A result of `tools/call` whose members are JSON text already. */
interface ToolResult {
  /** Content blocks, each as JSON text. */
  readonly content: readonly string[];
  readonly structured?: string;
  readonly isError?: boolean;
  readonly meta: Members;
}

/** Writes results of `tools/call` in the form of one era. */
export function resultWriter(era: Era, server: ServerInfo): (result: ToolResult) => string {
  const modern = era === 'modern';
  // The server's title comes with the list and with server/discover.
  const { name, version } = server;
  const info = modern ? `,${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify({ name, version })}` : '';
  const head = modern ? '{"resultType":"complete","content":[' : '{"content":[';
  return ({ content, structured, isError = false, meta }) => {
    const body = structured === undefined ? '' : `,"structuredContent":${structured}`;
    const error = isError ? ',"isError":true' : '';
    return `${head}${content.join(',')}]${body}${error},"_meta":{${membersText(meta)}${info}}}`;
  };
}

function textBlock(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}

/** The backend's answer as content and structured content. */
function deliveredContent(
  content: AnswerContent,
  era: Era,
  resourceUrl: string,
): Pick<ToolResult, 'content' | 'structured'> {
  switch (content.kind) {
    case 'json': {
      const { text, value } = content;
      // A JSON string is shown without its quotes and escapes.
      return {
        content: [textBlock(typeof value === 'string' ? value : text)],
        structured: structured(text, isObject(value), era),
      };
    }
    case 'text':
      return { content: [textBlock(content.text)], structured: structured(JSON.stringify(content.text), false, era) };
    case 'empty':
      return { content: [textBlock('')], structured: structured('null', false, era) };
    case 'bytes':
      // Structured content would only repeat the base64.
      return { content: [bytesBlock(content, resourceUrl)] };
  }
}

/** The value that an output schema is applied to; undefined for bytes. */
function schemaValue(content: AnswerContent): Json | undefined {
  if (content.kind === 'json') return content.value;
  if (content.kind === 'text') return content.text;
  return content.kind === 'empty' ? null : undefined;
}

/** In the legacy era structured content must be an object. */
function structured(text: string, isRecord: boolean, era: Era): string {
  return isRecord || era === 'modern' ? text : `{"value":${text}}`;
}

const MEDIA = /^(image|audio)\//i;

function bytesBlock(
  { base64, mediaType, contentEncoding }: Extract<AnswerContent, { kind: 'bytes' }>,
  uri: string,
): string {
  const mimeType = mediaType.split(';')[0]?.trim() ?? mediaType;
  const type = MEDIA.exec(mimeType)?.[1]?.toLowerCase();
  if (type !== undefined && contentEncoding === undefined) return JSON.stringify({ type, data: base64, mimeType });
  const encoding =
    contentEncoding === undefined ? {} : { _meta: { 'agent-commerce/contentEncoding': contentEncoding } };
  return JSON.stringify({ type: 'resource', resource: { uri, mimeType, blob: base64, ...encoding } });
}

/** One `tools/call`, as far as its answer depends on it. */
interface ToolCall {
  readonly id: RpcId;
  readonly era: Era;
  readonly requestId: string;
  readonly resourceId: string;
  readonly resourceUrl: string;
  /** Set where an output schema was published. */
  readonly fitsOutput: Resource['fitsOutput'];
  readonly write: (result: ToolResult) => string;
}

export function mcpResponseWriter(res: Response, call: ToolCall, budget: AnswerBudget): ResponseWriter {
  const { requestId, era } = call;
  const answer = (result: ToolResult): string => resultText(call.id, call.write(result));
  return {
    maxAnswerBytes: MAX_BUFFERED_BYTES,
    paymentRequired({ terse, authorization, refusal, message }, payment) {
      const mandate = authorization === undefined ? '' : `,"authorization":${authorization}`;
      const refusedWith = refusal === undefined ? '' : `,"refusal":${JSON.stringify(refusal)}`;
      const structured = `${terse.document.slice(0, -1)},"code":"PAYMENT_REQUIRED"${mandate}${refusedWith}}`;
      const meta = { 'x402/error': terse.tokenOnly, ...annotationMembers({ requestId, payment }) };
      // The same text twice: clients that read different members must not see different terms.
      const content = [textBlock(structured), textBlock(`${refusal?.message ?? message} ${HOW_TO_PAY}`)];
      sendRpc(res, 200, answer({ content, structured, isError: true, meta }));
    },
    failed(error, { resourceId: known, payment, mandateReceipt }) {
      for (const [name, value] of Object.entries(error.headers)) if (!res.headersSent) res.setHeader(name, value);
      if (error.code === 'RESOURCE_NOT_FOUND') {
        sendRpc(res, 200, errorText(call.id, { code: INVALID_PARAMS, message: UNKNOWN_TOOL }));
        return;
      }
      const structured = JSON.stringify(errorEnvelope(error, requestId, known));
      const meta = annotationMembers({ requestId, payment, mandateReceipt });
      sendRpc(res, 200, answer({ content: [textBlock(structured)], structured, isError: true, meta }));
    },
    relay(delivered, answered) {
      return withContent(delivered, { budget, paid: answered.payment !== undefined }, (content) => {
        const { payment, mandateReceipt, statement } = answered;
        const meta = {
          ...deliveryMember(call, delivered.status, answered),
          ...annotationMembers({ payment, mandateReceipt, statement: statement?.() }),
        };
        const result = deliveredContent(content, era, call.resourceUrl);
        if (call.fitsOutput === undefined || fits(call.fitsOutput, schemaValue(content)))
          return sendRpcWatched(res, answer({ ...result, meta }), answered.sending);
        // Clients throw when a success does not fit the schema, and the paid content would be lost.
        return sendRpcWatched(res, answer({ content: result.content, isError: true, meta }), answered.sending);
      });
    },
  };
}

const HOW_TO_PAY =
  'Sign one entry of accepts and repeat the call with the PaymentPayload in _meta["x402/payment"], or as base64 in _payment.';
/** The same for a tool that does not exist and for one that is not exposed on this channel. */
const UNKNOWN_TOOL = 'Invalid params: no such tool. tools/list says what there is.';

function fits(check: NonNullable<Resource['fitsOutput']>, value: ReturnType<typeof schemaValue>): boolean {
  return value !== undefined && check(value);
}
