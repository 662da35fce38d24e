/** The body of an operation: its members in the input, or the whole of it under one name. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { FORM_TYPE } from '../../src/resources/backend-request.ts';
import type { PairStyle } from '../../src/resources/url-template.ts';
import { essenceOf, isJson } from './media-types.ts';
import { listed, type Operation } from './operations.ts';
import { itemsOf, mayBe } from './parameters.ts';
import { type Documents, Inexpressible, type Place, resolved } from './references.ts';
import type { LeftOut, SchemaReader } from './schemas.ts';
import { withoutEmpty } from './written-pairs.ts';

export interface Body {
  readonly contentType: string;
  readonly schema: JsonObject;
  readonly required: boolean;
  /** How the fields of a form are written. */
  readonly styles: ReadonlyMap<string, PairStyle>;
  readonly leftOut: readonly LeftOut[];
}

const JSON_TYPE = 'application/json';

/**
 * Undefined without a body. Many documents forget to say that a body is required, and who calls
 * without one pays for an error: only `required: false` makes it optional, or that null is one.
 * @throws Inexpressible for a required one that cannot be sent
 */
export function bodyOf(
  documents: Documents,
  { place: { file, value }, method }: Operation,
  reader: SchemaReader,
): { readonly body: Body | undefined; readonly leftOut: readonly LeftOut[] } {
  const source = value['requestBody'];
  if (source === undefined) return { body: undefined, leftOut: [] };
  const request = resolved(documents, { file, value: source }, 'a body');
  const stated = request.value['required'];
  const carries = method !== 'GET' && method !== 'DELETE';
  let required = carries ? stated !== false : stated === true;
  try {
    if (!carries) {
      required ||= stated !== false && needsContent(readBody(request, false, reader).schema);
      throw new Inexpressible(`no resource of ${method} has: use POST, or leave requestBody out`);
    }
    const body = readBody(request, required, reader);
    const isOptional = stated === undefined && mayBe(body.schema, 'null');
    return { body: isOptional ? { ...body, required: false } : body, leftOut: body.leftOut };
  } catch (error) {
    if (!(error instanceof Inexpressible)) throw error;
    if (required) throw new Inexpressible(`needs a body, which ${error.message}`);
    return { body: undefined, leftOut: [{ path: 'the body', reason: error.message }] };
  }
}

/** Whether no empty object fits: such a body is hardly optional, whatever the document says. */
function needsContent(schema: Json): boolean {
  if (!isObject(schema)) return false;
  const { required, oneOf, anyOf } = schema;
  const choice = oneOf ?? anyOf;
  if (Array.isArray(choice)) return (choice as readonly Json[]).every(needsContent);
  return Array.isArray(required) || (schema['type'] !== undefined && !mayBe(schema, 'object'));
}

function readBody(
  { file, value }: Place & { readonly value: JsonObject },
  required: boolean,
  reader: SchemaReader,
): Body {
  const content = isObject(value['content']) ? value['content'] : {};
  const media = chosenMedia(Object.keys(content));
  const entry = content[media];
  const { schema, leftOut } = reader.read({ file, value: (isObject(entry) ? entry['schema'] : undefined) ?? true });
  const contentType = isJson(media) && essenceOf(media).includes('*') ? JSON_TYPE : essenceOf(media);
  if (contentType !== FORM_TYPE) return { contentType, schema, required, styles: new Map(), leftOut };
  if (!mayBe(schema, 'object'))
    throw new Inexpressible('is a form without fields: give its schema type: object and properties');
  const styles = fieldStyles(schema, isObject(entry) ? entry['encoding'] : undefined);
  return { contentType, schema: sentAsFields(schema, styles), required, leftOut, styles };
}

/** A form without the fields of which nothing would arrive. */
function sentAsFields(schema: JsonObject, styles: ReadonlyMap<string, PairStyle>): JsonObject {
  const { properties, required } = schema;
  if (!isObject(properties)) return schema;
  const needed = listed(required);
  const fields = Object.entries(properties).map(([name, field]): readonly [string, Json] => {
    const isWhole = !isObject(field) || styles.get(name) === 'json';
    return [name, isWhole ? field : withoutEmpty(field, needed.includes(name))];
  });
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** JSON before a merge patch before other kinds of JSON before a form. */
function chosenMedia(types: readonly string[]): string {
  const rank = (media: string): number => {
    const essence = essenceOf(media);
    if (essence === JSON_TYPE) return 0;
    if (essence.includes('*') && isJson(media)) return 1;
    if (essence === 'application/merge-patch+json') return 2;
    if (isJson(media)) return 3;
    return essence === FORM_TYPE ? 4 : 5;
  };
  const [best] = types.toSorted((a, b) => rank(a) - rank(b));
  if (best === undefined) throw new Inexpressible('has no media type: name application/json under content');
  if (rank(best) === 5)
    throw new Inexpressible(
      `is ${types.map(essenceOf).join(' or ')}: JSON and URL-encoded forms are sent, so add one of them under content`,
    );
  return best;
}

/**
 * The style of each field that is a list or an object. Without an `encoding` a list is a pair for
 * each item and an object is JSON text.
 */
function fieldStyles(schema: JsonObject, encodings: Json | undefined): ReadonlyMap<string, PairStyle> {
  const styles = new Map<string, PairStyle>();
  for (const [name, field] of Object.entries(isObject(schema['properties']) ? schema['properties'] : {})) {
    const style = fieldStyle(field, isObject(encodings) ? encodings[name] : undefined);
    if (style !== undefined) styles.set(name, style);
  }
  return styles;
}

function fieldStyle(field: Json, encoding: Json | undefined): PairStyle | undefined {
  if (!isObject(field)) return undefined;
  const isObjectOrDeep =
    mayBe(field, 'object') || itemsOf(field).some((items) => mayBe(items, 'object') || mayBe(items, 'array'));
  if (!isObjectOrDeep && !mayBe(field, 'array')) return undefined;
  const { style, explode } = isObject(encoding) ? encoding : {};
  if (style === 'deepObject') return 'deepObject';
  if (isObjectOrDeep) return 'json';
  if (style === undefined || explode !== false) return undefined;
  return style === 'spaceDelimited' ? 'space' : style === 'pipeDelimited' ? 'pipe' : 'comma';
}
