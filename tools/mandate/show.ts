/** `acg mandate show`: prints headers, envelopes, presentations and receipts, token by token. */

import { UsageError } from '../../src/cli/program.ts';
import { isObject, type Json } from '../../src/json/json.ts';
import { readText } from './files.ts';
import { hashOf } from './maker/tokens.ts';
import type { Options } from './options.ts';

const LABEL = /^agent-authorization(?:-receipt)?:\s*/i;
/** Members that are unix seconds. */
const TIMES = new Set(['iat', 'exp', 'nbf']);
/** Characters that control a terminal or change the order of text. */
const UNPRINTABLE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Decodes, and verifies nothing. @throws UsageError without a text, Error for any other text */
export function show({ rest }: Options): string {
  const [given, ...more] = rest;
  if (given === undefined || more.length > 0)
    throw new UsageError('mandate show takes one header value, or - for standard input');
  const text = (given === '-' ? readText('-') : given).trim().replace(LABEL, '');
  return `${['Decoded, not verified.', ...shown(text)].join('\n')}\n`;
}

function shown(text: string): readonly string[] {
  if (text.includes('~')) return presentation('presentation', text);
  if (text.split('.').length === 3) return token('token', text);
  const envelope = decoded(text) ?? parsed(text);
  if (!isObject(envelope))
    throw new Error(
      'this is no Agent-Authorization header, presentation or receipt: it does not decode to JSON, has no ~ and is no JWT; for a file: mandate show - < FILE',
    );
  const { payload, payment_mandate: payment, ...rest } = envelope;
  const lines = [`envelope, ${text.length} bytes: ${compact(rest)}`];
  if (payload !== undefined) lines.push(...member('payload', payload));
  if (payment !== undefined) lines.push(...member('payment_mandate', payment));
  return lines;
}

function member(name: string, value: Json): readonly string[] {
  return typeof value === 'string' ? presentation(name, value) : [`${name}: no text but ${compact(value)}`];
}

function presentation(name: string, text: string): readonly string[] {
  const pieces = text.split('~~');
  return pieces.flatMap((piece, at) => {
    const last = at === pieces.length - 1;
    const segment = last ? piece : `${piece}~`;
    const [jwt = '', ...disclosures] = segment.split('~');
    const tail = segment.endsWith('~') ? [] : ['  does not end in ~: a segment must'];
    return [
      '',
      `${name}, segment ${at + 1} of ${pieces.length}`,
      ...token('token', jwt).map((line) => `  ${line}`),
      `  id       ${hashOf(jwt.split('.').slice(0, 2).join('.'))}`,
      `  sd_hash  ${hashOf(segment)}`,
      ...disclosures.filter((one) => one !== '').flatMap(disclosure),
      ...tail,
    ];
  });
}

function token(name: string, jwt: string): readonly string[] {
  const [header, claims] = jwt.split('.');
  return [`${name} head    ${decodedPart(header)}`, `${name} claims  ${decodedPart(claims)}`];
}

function disclosure(text: string): readonly string[] {
  const value = decoded(text);
  if (!Array.isArray(value)) return [`  ${hashOf(text)} cannot be read: ${escaped(text.slice(0, 60))}`];
  const [, ...named] = value as readonly Json[];
  const nested = named.find((one) => typeof one === 'string' && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(one));
  if (typeof nested !== 'string')
    return [`  ${hashOf(text)} = ${withTimes(named.length === 1 ? (named[0] ?? null) : named)}`];
  return [
    `  ${hashOf(text)} = ${escaped(String(named[0]))}, a token with the hash ${hashOf(nested)}:`,
    ...token('   checkout', nested),
  ];
}

function decodedPart(part: string | undefined): string {
  const value = part === undefined ? undefined : decoded(part);
  return value === undefined ? `cannot be read: ${escaped((part ?? '').slice(0, 60))}` : withTimes(value);
}

/** The JSON, followed by its times as dates. */
function withTimes(value: Json): string {
  const dates = isObject(value)
    ? Object.entries(value).flatMap(([name, seconds]) => (TIMES.has(name) ? [`${name} ${dateOf(seconds)}`] : []))
    : [];
  return dates.length === 0 ? compact(value) : `${compact(value)}  (${dates.join(', ')})`;
}

function dateOf(seconds: Json): string {
  const date = new Date(typeof seconds === 'number' ? seconds * 1_000 : Number.NaN);
  return Number.isNaN(date.getTime()) ? 'is no time' : date.toISOString();
}

function compact(value: Json): string {
  return escaped(JSON.stringify(value));
}

/** A token may be hostile: it must not control the terminal. */
function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
  return text.replace(/[\u0000-\u001f]/g, coded).replace(UNPRINTABLE, coded);
}

function coded(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function decoded(part: string): Json | undefined {
  return /^[\w-]+$/.test(part) ? parsed(Buffer.from(part, 'base64url').toString('utf8')) : undefined;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
