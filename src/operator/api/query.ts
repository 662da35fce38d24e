import { GatewayError } from '../../errors.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;

/** The query of an operator route. `query parser` is off: nothing here becomes a nested object. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
}

/** `limit`: 1 to 500, default 50; more is clamped, anything that is no positive integer is refused (contract 6). */
export function limitOf(query: URLSearchParams): number {
  const text = single(query, 'limit');
  if (text === undefined) return DEFAULT_LIMIT;
  if (!/^[0-9]+$/.test(text) || Number(text) === 0) throw badParameter('limit', 'an integer from 1 to 500');
  return Math.min(Number(text), MAX_LIMIT);
}

/** A parameter that must match a pattern when it is there, and be there once. */
export function matching(query: URLSearchParams, name: string, pattern: RegExp, meaning: string): string | undefined {
  const value = single(query, name);
  if (value !== undefined && !pattern.test(value)) throw badParameter(name, meaning);
  return value;
}

/** A parameter that must be a word of a closed list when it is there, and be there once. */
export function oneOf<Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const value = single(query, name);
  const word = words.find((known) => known === value);
  if (value !== undefined && word === undefined) throw badParameter(name, `one of ${words.join(', ')}`);
  return word;
}

/** Whichever of two values were taken, somebody would read a list that he did not ask for. */
function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name);
  if (more.length > 0) throw badParameter(name, 'given once');
  return value;
}

function badParameter(field: string, meaning: string): GatewayError {
  return new GatewayError('INPUT_INVALID', {
    message: `The query parameter ${field} must be ${meaning}.`,
    details: { field },
  });
}
