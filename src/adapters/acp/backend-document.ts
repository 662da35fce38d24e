/**
 * Checks an answer of the backend that has the expected status. The result is a document of the
 * protocol, or the fault for which it is refused (acp 13.5). backend-exchange.ts calls it.
 */

import type { ReceivedHeaders } from '../../backend/backend-exchange.ts';
import { ACP_VERSION, type Operation } from '../../checkouts/operations.ts';
import { isObject, type Json, JsonError, type JsonObject, parseStrictJson } from '../../json/json.ts';
import { isEncoded } from '../../server/http/request.ts';
import { type DocumentName, type Fault, validatorOf } from './validation/validator.ts';

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
/** The schemas that answers are held to. */
const SCHEMAS: readonly DocumentName[] = ['CheckoutSession', 'CheckoutSessionWithOrder', 'Error'];

/** The ways in which a valid document can contradict itself or the call, each with its place. */
const CONTRADICTIONS = {
  session_id: '$.id',
  order_session_id: '$.order.checkout_session_id',
  not_canceled: '$.status',
  authentication: '$.authentication_metadata',
  version: '$.protocol.version',
} as const;
export type Contradiction = keyof typeof CONTRADICTIONS;

/**
 * The fault of a document. `empty_extensions`: an empty list that the schema forbids by accident
 * and backends send (acp 11). `contradiction`: one of CONTRADICTIONS, with `strictSemantics`.
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
  /** Keyword of the schema, `reason` of the JsonError, or name of the contradiction. */
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

/** Compiles the schemas at the start: a compilation during the first answer delays all calls. */
export function compileDocumentSchemas(): void {
  for (const name of SCHEMAS) validatorOf('strict', name);
}

function invalid(reason: DocumentReason, pointer = '$', keyword?: string): CheckedDocument {
  return { kind: 'invalid', fault: { reason, pointer, keyword } };
}

/**
 * The path of a fault in names of the schema alone, because log and metrics show it: the backend
 * chooses the names of unknown members and those in a map (`metadata`).
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

const BLANK = /^[ \t]*$/;
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})/;
const CLOSING_FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*$/;
/** A quotation or an item of a list begins. */
const CONTAINER = /^[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$))/;
/** A line that may be a fence inside quotations and lists. */
const NESTED_FENCE = /^(?:[ \t>]|[-+*]|\d{1,9}[.)])*(?:`{3}|~{3})/;
const URI_LINK = /<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>\p{Cc}]*>/uy;
const MAIL_LINK =
  /<[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*>/y;
const TAG_BEGIN = /[A-Za-z/!?]/;

/**
 * Whether a text has a `<` before a letter, `/`, `!` or `?` that is neither code nor an autolink,
 * by the blocks and inlines of CommonMark 0.31.2. In doubt the `<` counts as a tag, although it may
 * be code. Takes linear time.
 */
export function hasRawHtml(markdown: string): boolean {
  const fences = new Fences();
  // Whether code spans can be trusted: one that was opened on an earlier line of the block may end
  // on this one.
  let certain = true;
  for (const line of markdown.split(/\r\n|\n|\r/)) {
    // A blank line ends every block that holds code spans, but it ends no fence.
    if (BLANK.test(line) || fences.take(line)) {
      certain = true;
      continue;
    }
    const seen = scanLine(line, certain);
    if (seen === 'html') return true;
    if (seen === 'open') certain = false;
  }
  return false;
}

/** Tracks fenced code by lines. From the first list or quotation on only certain fences count. */
class Fences {
  #open: { readonly mark: string; readonly length: number } | undefined;
  #trust: 'all' | 'unindented' | 'none' = 'all';

  /** Whether a line is fenced code or a fence. */
  take(line: string): boolean {
    if (this.#open !== undefined) {
      if (closes(line, this.#open)) this.#open = undefined;
      return true;
    }
    const [, indent = '', fence] = FENCE.exec(line) ?? [];
    if (fence !== undefined && (this.#trust === 'all' || (this.#trust === 'unindented' && indent === ''))) {
      this.#open = { mark: fence.charAt(0), length: fence.length };
      return true;
    }
    const container = CONTAINER.test(line);
    if ((container || this.#trust !== 'all') && NESTED_FENCE.test(line)) this.#trust = 'none';
    else if (container && this.#trust === 'all') this.#trust = 'unindented';
    return false;
  }
}

function closes(line: string, { mark, length }: { readonly mark: string; readonly length: number }): boolean {
  const [, fence = ''] = CLOSING_FENCE.exec(line) ?? [];
  return fence.startsWith(mark) && fence.length >= length;
}

/**
 * One line of text. `open`: a code span may begin on it that does not end on it. `trusted`: false
 * where one may be open already.
 */
function scanLine(line: string, trusted: boolean): 'html' | 'open' | 'text' {
  const closers = trusted ? closersOf(line) : undefined;
  let open = false;
  let at = 0;
  while (at < line.length) {
    const char = line.charAt(at);
    if (char === '`') {
      const run = backticks(line, at);
      // An escaped run begins no span, or a shorter one: then nothing on the line is certain.
      const escaped = line.charAt(at - 1) === '\\';
      const closer = open || escaped ? undefined : closers?.get(at);
      if (closer === undefined) open = true;
      at = closer ?? at + run;
    } else if (char === '<') {
      const link = linkEnd(line, at);
      if (link === undefined && TAG_BEGIN.test(line.charAt(at + 1))) return 'html';
      at = link ?? at + 1;
    } else at += 1;
  }
  return open ? 'open' : 'text';
}

/** Maps the index of each run of backticks to the index behind the next run of the same length. */
function closersOf(line: string): ReadonlyMap<number, number> {
  const closers = new Map<number, number>();
  const last = new Map<number, number>();
  for (let at = line.indexOf('`'); at !== -1; ) {
    const run = backticks(line, at);
    const opener = last.get(run);
    if (opener !== undefined) closers.set(opener, at + run);
    last.set(run, at);
    at = line.indexOf('`', at + run);
  }
  return closers;
}

function backticks(line: string, start: number): number {
  let end = start;
  while (line.charAt(end) === '`') end += 1;
  return end - start;
}

function linkEnd(line: string, at: number): number | undefined {
  for (const link of [URI_LINK, MAIL_LINK]) {
    link.lastIndex = at;
    if (link.test(line)) return link.lastIndex;
  }
  return undefined;
}
