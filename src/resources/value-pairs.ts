/** Writes values as `name=value` pairs, in the query or in a form, in the styles of OpenAPI. */

import { isObject, type Json } from '../json/types.ts';
import { encodeText, scalarText } from './url-template.ts';

/**
 * How a list or an object is written. `comma`, `space`, `pipe`: a list in one pair. `deepObject`: a
 * pair for each value inside, `name[key]=value`, items of a list as `name[]=value` or, when they
 * are no scalars, `name[0][key]=value`. `json`: JSON text in one pair.
 */
export type PairStyle = keyof typeof WRITERS;

type Pairs = readonly string[] | undefined;

const WRITERS = {
  comma: (name: string, value: Json) => joined(name, value, ','),
  space: (name: string, value: Json) => joined(name, value, ' '),
  pipe: (name: string, value: Json) => joined(name, value, '|'),
  deepObject,
  json: (name: string, value: Json) => pair(name, JSON.stringify(value)),
};

/**
 * The pairs of one value, percent-encoded. Without a style a list becomes a pair for each item;
 * scalars look alike in each style but `json`. Undefined: the value has no such form.
 */
export function pairsOf(name: string, value: Json, style: PairStyle | undefined): Pairs {
  return style === undefined ? repeated(name, value) : WRITERS[style](name, value);
}

function repeated(name: string, value: Json): Pairs {
  return together(Array.isArray(value) ? value.map((item) => pair(name, scalarText(item))) : [scalar(name, value)]);
}

/** An item that has the separator would become two. */
function joined(name: string, value: Json, separator: string): Pairs {
  if (!Array.isArray(value)) return scalar(name, value);
  const texts = value.map(scalarText);
  if (texts.some((text) => text === undefined || text.includes(separator))) return undefined;
  return texts.length === 0 ? [] : pair(name, texts.join(separator), separator);
}

function deepObject(name: string, value: Json): Pairs {
  if (Array.isArray(value)) {
    // An index tells the members of two objects apart, and some servers read it as a key.
    const indexed = value.some((item) => scalarText(item) === undefined);
    return together(value.map((item, index) => deepObject(`${name}[${indexed ? index : ''}]`, item)));
  }
  if (isObject(value)) return together(Object.entries(value).map(([key, item]) => deepObject(`${name}[${key}]`, item)));
  return scalar(name, value);
}

function scalar(name: string, value: Json): Pairs {
  return pair(name, scalarText(value));
}

/** `kept`: a comma stays one, because servers split before they decode. */
function pair(name: string, text: string | undefined, kept?: string): Pairs {
  const key = encodeText(name);
  const encoded = text === undefined ? undefined : encodeText(text);
  if (key === undefined || encoded === undefined) return undefined;
  return [`${key}=${kept === ',' ? encoded.replaceAll('%2C', ',') : encoded}`];
}

function together(parts: readonly Pairs[]): Pairs {
  const known = parts.filter((part) => part !== undefined);
  return known.length === parts.length ? known.flat() : undefined;
}
