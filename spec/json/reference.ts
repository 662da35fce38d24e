/** The rules of strict JSON once more, as plainly as they can be written, to compare with. */

import { FORBIDDEN_NAMES, type JsonError, MAX_JSON_DEPTH, MAX_JSON_MEMBERS } from '../../src/json/json.ts';

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|-?\d[\d.eE+-]*|true|false|null/gs;

/** The first rule that a document breaks, in the order of its tokens. */
export function faultOf(text: string): JsonError['reason'] | 'ok' {
  try {
    JSON.parse(text);
  } catch {
    return 'malformed_json';
  }
  const tokens = text.match(TOKEN) ?? [];
  const open: Set<string>[] = [];
  let members = 0;
  for (const [index, token] of tokens.entries()) {
    if (token === '{' || token === '[') {
      open.push(new Set());
      if (open.length > MAX_JSON_DEPTH) return 'too_deep';
    } else if (token === '}' || token === ']') open.pop();
    else if (token.startsWith('"')) {
      const value = JSON.parse(token) as string;
      const isName = tokens[index + 1] === ':';
      if (isName) members += 1;
      if (members > MAX_JSON_MEMBERS) return 'too_many_members';
      if (!value.isWellFormed()) return 'malformed_json';
      if (!isName) continue;
      if (FORBIDDEN_NAMES.has(value)) return 'forbidden_key';
      if (open.at(-1)?.has(value)) return 'duplicate_key';
      open.at(-1)?.add(value);
    } else if (/^[-\d]/.test(token)) {
      const exact = /^-?\d+$/.test(token) ? Number.isSafeInteger(Number(token)) : Number.isFinite(Number(token));
      if (!exact) return 'number_out_of_range';
    }
  }
  return 'ok';
}
