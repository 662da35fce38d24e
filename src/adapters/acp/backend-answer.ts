import type { ReceivedHeaders } from '../../backend/exchange.ts';
import { ACP_VERSION, type Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import { isEncoded } from '../../server/http/headers.ts';
import { hasRawHtml } from './markdown.ts';
import type { DocumentName, Fault } from './validation/types.ts';
import { validatorOf } from './validation/validator.ts';

/** How a valid document can contradict itself or the call (acp 13.5); a closed list. */
const CONTRADICTIONS = ['session_id', 'order_session_id', 'not_canceled', 'authentication', 'version'] as const;
export type Contradiction = (typeof CONTRADICTIONS)[number];

/** Where each of them stands in the document. */
export const CONTRADICTION_PLACES: Readonly<Record<Contradiction, string>> = {
  session_id: '$.id',
  order_session_id: '$.order.checkout_session_id',
  not_canceled: '$.status',
  authentication: '$.authentication_metadata',
  version: '$.protocol.version',
};

/**
 * Looks for them in a document that is valid by the schema. `sessionId`: of the call, undefined for
 * create.
 */
function contradictionsIn(
  document: JsonObject,
  operation: Operation,
  sessionId: string | undefined,
): readonly Contradiction[] {
  const { id, status, order, protocol } = document;
  const orderOf = isObject(order) ? order['checkout_session_id'] : id;
  const version = isObject(protocol) ? protocol['version'] : ACP_VERSION;
  const found: Readonly<Record<Contradiction, boolean>> = {
    session_id: sessionId !== undefined && id !== sessionId,
    order_session_id: orderOf !== id,
    not_canceled: operation === 'cancelCheckoutSession' && status !== 'canceled',
    authentication: status === 'authentication_required' && document['authentication_metadata'] === undefined,
    version: version !== ACP_VERSION,
  };
  return CONTRADICTIONS.filter((name) => found[name]);
}

/**
 * What is wrong with a document of the merchant's: `empty_extensions` is the one that the schema
 * forbids by accident and merchants send (acp 11), `contradiction` one of `semantics.ts` where
 * those are refused.
 */
const DOCUMENT_REASONS = [
  'media_type',
  'content_encoding',
  'json',
  'schema',
  'empty_extensions',
  'markdown',
  'contradiction',
] as const;
type DocumentReason = (typeof DOCUMENT_REASONS)[number];

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
  readonly headers: ReceivedHeaders;
  readonly body: Uint8Array;
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** Checks what the merchant answered with the expected status, in the order of acp 13.5. */
export function checkDocument({ operation, sessionId, headers, body }: ReceivedDocument): CheckedDocument {
  const type = headers['content-type'];
  if (typeof type !== 'string' || !JSON_TYPE.test(type)) return invalid('media_type');
  if (isEncoded(headers['content-encoding'])) return invalid('content_encoding');
  const read = readJson(body);
  if (read.kind === 'illegible') return invalid('json', '$', read.keyword);
  const { document } = read;
  const fault = validatorOf('strict', schemaOf(operation, document))(document);
  if (fault !== undefined)
    return invalid(hasEmptyExtensions(document) ? 'empty_extensions' : 'schema', placeOf(fault), fault.keyword);
  // The schema has let nothing through but objects.
  if (!isObject(document)) return invalid('schema', '$', 'type');
  const html = rawHtmlIn(document);
  if (html !== undefined) return invalid('markdown', html);
  return { kind: 'valid', document, contradictions: contradictionsIn(document, operation, sessionId) };
}

function invalid(reason: DocumentReason, pointer = '$', keyword?: string): CheckedDocument {
  return { kind: 'invalid', fault: { reason, pointer, keyword } };
}

/**
 * Where a fault is, in names of the schema alone, because log and metrics say it: a member that the
 * schema does not know, and one of a map, was named by the merchant.
 */
function placeOf({ param, keyword }: Fault): string {
  const place = keyword === 'additionalProperties' ? param.replace(/\.[^.[\]]+$/, '') : param;
  return place.replace(/(\.metadata)\..*$/, '$1');
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

/** A completed session must have an order, every other answer of a complete need not (acp 4.3). */
export function schemaOf(operation: Operation, document: Json): DocumentName {
  const done = operation === 'completeCheckoutSession' && isObject(document) && document['status'] === 'completed';
  return done ? 'CheckoutSessionWithOrder' : 'CheckoutSession';
}

/** Whether this is what the schema stumbles over: an empty list is of both its branches. */
function hasEmptyExtensions(document: Json): boolean {
  const capabilities = isObject(document) ? document['capabilities'] : undefined;
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  if (!isObject(document) || !isObject(capabilities) || !Array.isArray(extensions) || extensions.length > 0)
    return false;
  const { extensions: _, ...others } = capabilities;
  return validatorOf('strict', 'CheckoutSession')({ ...document, capabilities: others }) === undefined;
}

/**
 * JSONPath of the first Markdown text with raw HTML. Messages and disclosures are all that may be
 * Markdown.
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

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
