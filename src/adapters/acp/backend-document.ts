/**
 * Checks what the backend answers with the expected status: a document of the protocol, or the
 * fault for which it is refused (acp 13.5). outcome.ts asks it.
 */

import type { ReceivedHeaders } from '../../backend/exchange.ts';
import { ACP_VERSION, type Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import { isEncoded } from '../../server/http/headers.ts';
import { hasRawHtml } from './markdown.ts';
import type { DocumentName, Fault } from './validation/types.ts';
import { validatorOf } from './validation/validator.ts';

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
/** The schemas that answers are held to. */
const SCHEMAS: readonly DocumentName[] = ['CheckoutSession', 'CheckoutSessionWithOrder', 'Error'];

/** How a valid document can contradict itself or the call, and where: a closed list. */
const CONTRADICTIONS = {
  session_id: '$.id',
  order_session_id: '$.order.checkout_session_id',
  not_canceled: '$.status',
  authentication: '$.authentication_metadata',
  version: '$.protocol.version',
} as const;
export type Contradiction = keyof typeof CONTRADICTIONS;

/**
 * What is wrong with a document. `empty_extensions`: what the schema forbids by accident and
 * backends send (acp 11). `contradiction`: one of the above, where those are refused.
 */
type DocumentReason =
  | 'media_type'
  | 'content_encoding'
  | 'json'
  | 'schema'
  | 'empty_extensions'
  | 'markdown'
  | 'contradiction';

/** One fault of a document, without any value of it. */
export interface DocumentFault {
  readonly reason: DocumentReason;
  /** JSONPath of the member; `$` for the whole. */
  readonly pointer: string;
  /** Of the schema, the machine word of the JSON reader, or the name of the contradiction. */
  readonly keyword: string | undefined;
}

type CheckedDocument =
  | {
      readonly kind: 'valid';
      readonly document: JsonObject;
      readonly contradictions: readonly Contradiction[];
    }
  | { readonly kind: 'invalid'; readonly fault: DocumentFault };

/** A document as it came, and the call that it answers. */
interface ReceivedDocument {
  readonly operation: Operation;
  /** Undefined for create. */
  readonly sessionId: string | undefined;
  /** Whether a contradiction is a fault. */
  readonly strictSemantics: boolean;
  readonly headers: ReceivedHeaders;
  readonly body: Uint8Array;
}

/** In the order of acp 13.5. */
export function checkDocument(received: ReceivedDocument): CheckedDocument {
  const { operation, sessionId, strictSemantics, headers, body } = received;
  const type = headers['content-type'];
  if (typeof type !== 'string' || !JSON_TYPE.test(type)) return invalid('media_type');
  if (isEncoded(headers['content-encoding'])) return invalid('content_encoding');
  const read = readJson(body);
  if (read.kind === 'illegible') return invalid('json', '$', read.keyword);
  const { document } = read;
  const fault = validatorOf('strict', schemaOf(operation, document))(document);
  if (fault !== undefined)
    return invalid(hasEmptyExtensions(document) ? 'empty_extensions' : 'schema', pointerOf(fault), fault.keyword);
  // The schema has let nothing through but objects.
  if (!isObject(document)) return invalid('schema', '$', 'type');
  const html = rawHtmlIn(document);
  if (html !== undefined) return invalid('markdown', html);
  const contradictions = contradictionsIn(document, operation, sessionId);
  const [first] = contradictions;
  if (strictSemantics && first !== undefined) return invalid('contradiction', CONTRADICTIONS[first], first);
  return { kind: 'valid', document, contradictions };
}

/**
 * Compiles the schemas at the start: under the first answer that would keep all other calls
 * waiting.
 */
export function compileDocumentSchemas(): void {
  for (const name of SCHEMAS) validatorOf('strict', name);
}

function invalid(reason: DocumentReason, pointer = '$', keyword?: string): CheckedDocument {
  return { kind: 'invalid', fault: { reason, pointer, keyword } };
}

/**
 * The path of a fault in names of the schema alone, because log and metrics have it: the backend
 * chose the name of a member that the schema does not know, and of a member of a map.
 */
function pointerOf({ param, keyword }: Fault): string {
  const known = keyword === 'additionalProperties' ? param.replace(/\.[^.[\]]+$/, '') : param;
  return known.replace(/(\.metadata)\..*$/, '$1');
}

type Read =
  | { readonly kind: 'read'; readonly document: Json }
  | { readonly kind: 'illegible'; readonly keyword: string };

function readJson(body: Uint8Array): Read {
  try {
    return { kind: 'read', document: parseStrictJson(body) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    return { kind: 'illegible', keyword: thrown.reason };
  }
}

/** A completed session must have an order; other answers to a complete need none (acp 4.3). */
export function schemaOf(operation: Operation, document: Json): DocumentName {
  const done = operation === 'completeCheckoutSession' && isObject(document) && document['status'] === 'completed';
  return done ? 'CheckoutSessionWithOrder' : 'CheckoutSession';
}

/** Whether only `extensions: []` is wrong: the empty list matches both branches of the schema. */
function hasEmptyExtensions(document: Json): boolean {
  const capabilities = isObject(document) ? document['capabilities'] : undefined;
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  if (!isObject(document) || !isObject(capabilities) || !Array.isArray(extensions) || extensions.length > 0)
    return false;
  const { extensions: _, ...others } = capabilities;
  return validatorOf('strict', 'CheckoutSession')({ ...document, capabilities: others }) === undefined;
}

/**
 * JSONPath of the first Markdown text with raw HTML; only messages and disclosures are Markdown.
 */
function rawHtmlIn(document: JsonObject): string | undefined {
  const texts = [
    ...objects(document['messages']).map((text, index) => [`$.messages[${index}].content`, text] as const),
    ...objects(document['line_items']).flatMap((item, index) =>
      objects(item['disclosures']).map(
        (text, nth) => [`$.line_items[${index}].disclosures[${nth}].content`, text] as const,
      ),
    ),
  ];
  return texts.find(([, { content_type: type, content }]) => {
    return type === 'markdown' && typeof content === 'string' && hasRawHtml(content);
  })?.[0];
}

/** The contradictions of a valid document. `sessionId`: of the call, undefined for create. */
function contradictionsIn(
  document: JsonObject,
  operation: Operation,
  sessionId: string | undefined,
): readonly Contradiction[] {
  const { id, status, order, protocol } = document;
  const orderOf = isObject(order) ? order['checkout_session_id'] : id;
  const version = isObject(protocol) ? protocol['version'] : ACP_VERSION;
  const found: readonly (Contradiction | false)[] = [
    sessionId !== undefined && id !== sessionId && 'session_id',
    orderOf !== id && 'order_session_id',
    operation === 'cancelCheckoutSession' && status !== 'canceled' && 'not_canceled',
    status === 'authentication_required' && document['authentication_metadata'] === undefined && 'authentication',
    version !== ACP_VERSION && 'version',
  ];
  return found.filter((name) => name !== false);
}

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
