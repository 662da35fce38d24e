import type { Response } from 'express';
import { errorEnvelope } from '../../errors.ts';
import { isObject, type Json } from '../../json/types.ts';
import { withError } from '../../payments/x402/wire/challenge.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { Resource } from '../../resources/resource.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';
import { type AnswerContent, MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import { errorText, INVALID_PARAMS, type RpcId, resultText } from '../json-rpc/message.ts';
import {
  deliveryMember,
  type Members,
  mandateReceiptMember,
  paymentMember,
  requestIdMember,
} from '../json-rpc/metadata.ts';
import { sendRpc, sendRpcWatched } from '../json-rpc/send.ts';
import { type Era, META_SERVER_INFO } from './eras.ts';
import type { ServerInfo } from './tools.ts';

/** A result of `tools/call` whose members are JSON text already. */
interface ToolResult {
  /** Content blocks, each as JSON text. */
  readonly content: readonly string[];
  readonly structured?: string;
  readonly isError?: boolean;
  /** Of `_meta`. */
  readonly meta: Members;
}

/** Writes results of `tools/call` in the form of one era. */
export function resultWriter(era: Era, server: ServerInfo): (result: ToolResult) => string {
  const modern = era === 'modern';
  const info = modern ? `,${JSON.stringify(META_SERVER_INFO)}:${JSON.stringify(server)}` : '';
  const head = modern ? '{"resultType":"complete","content":[' : '{"content":[';
  return ({ content, structured, isError = false, meta }) => {
    const members = Object.entries(meta).map(([name, value]) => `${JSON.stringify(name)}:${value}`);
    const body = structured === undefined ? '' : `,"structuredContent":${structured}`;
    const error = isError ? ',"isError":true' : '';
    return `${head}${content.join(',')}]${body}${error},"_meta":{${members.join(',')}${info}}}`;
  };
}

/** A text block. */
function textBlock(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}

/** What the merchant delivered, as content and structured content. */
function deliveredContent(
  content: AnswerContent,
  era: Era,
  resourceUrl: string,
): Pick<ToolResult, 'content' | 'structured'> {
  switch (content.kind) {
    case 'json': {
      const { text, value } = content;
      // A string is what it says, everything else is its JSON.
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
      // Bytes are not said twice: base64 in structured content would only double them.
      return { content: [bytesBlock(content, resourceUrl)] };
  }
}

/**
 * The value that an output schema is held against; undefined for bytes, which no schema describes.
 */
function schemaValue(content: AnswerContent): Json | undefined {
  if (content.kind === 'json') return content.value;
  if (content.kind === 'text') return content.text;
  return content.kind === 'empty' ? null : undefined;
}

/** The legacy era knows objects only. */
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

/** One `tools/call` as its answer needs it. */
interface ToolCall {
  readonly id: RpcId;
  readonly era: Era;
  readonly requestId: string;
  readonly resourceId: string;
  readonly resourceUrl: string;
  /** Set where an output schema was advertised. */
  readonly fitsOutput: Resource['fitsOutput'];
  readonly write: (result: ToolResult) => string;
}

/** Outcomes as results of `tools/call` (mcp 5). */
export function mcpResponseWriter(res: Response, call: ToolCall, budget: AnswerBudget): ResponseWriter {
  const { requestId, era } = call;
  const answer = (result: ToolResult): string => resultText(call.id, call.write(result));
  return {
    maxAnswerBytes: MAX_BUFFERED_BYTES,
    paymentRequired({ document, asciiDocument, envelope, refusal, message }, payment) {
      const refusedWith = refusal === undefined ? '' : `,"refusal":${JSON.stringify(refusal)}`;
      // Some clients want a reason where the specification calls it optional.
      const terms = refusal === undefined ? withError(document, PLAIN_REASON) : document;
      const same = refusal === undefined ? withError(asciiDocument, PLAIN_REASON) : asciiDocument;
      const structured = `${terms.slice(0, -1)},${envelope.slice(1, -1)}${refusedWith}}`;
      const meta = { 'x402/error': same, ...requestIdMember(requestId), ...paymentMember(payment) };
      // One string for both places: clients that read different ones must not see different terms.
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
      const meta = {
        ...requestIdMember(requestId),
        ...paymentMember(payment),
        ...mandateReceiptMember(mandateReceipt),
      };
      sendRpc(res, 200, answer({ content: [textBlock(structured)], structured, isError: true, meta }));
    },
    relay(delivered, answered) {
      return withContent(delivered, { budget, paid: answered.payment !== undefined }, (content) => {
        const meta = {
          ...deliveryMember(call, delivered.status, answered),
          ...paymentMember(answered.payment),
          ...mandateReceiptMember(answered.mandateReceipt),
        };
        const said = deliveredContent(content, era, call.resourceUrl);
        if (call.fitsOutput === undefined || fits(call.fitsOutput, schemaValue(content)))
          return sendRpcWatched(res, answer({ ...said, meta }), answered.sending);
        // Clients throw when a success does not fit the schema, and what was paid for would be lost
        // in their exception.
        return sendRpcWatched(res, answer({ content: said.content, isError: true, meta }), answered.sending);
      });
    },
  };
}

const PLAIN_REASON = 'Payment required';
const HOW_TO_PAY =
  'Sign one entry of accepts and repeat the call with the PaymentPayload in _meta["x402/payment"], or its base64 in the argument _payment.';
/** The same for a tool that does not exist and for one that is not offered here. */
const UNKNOWN_TOOL = 'Invalid params: no such tool. tools/list says what there is.';

function fits(check: NonNullable<Resource['fitsOutput']>, value: ReturnType<typeof schemaValue>): boolean {
  return value !== undefined && check(value);
}
