/** Reads the text that takes the place of a whole value as the type that the schema wants there. */

import type { Member } from './document/member.ts';
import { schemaAt } from './document/schema-at.ts';

/** A value of the document, or what the text must be to become one. */
type TypedText =
  | { readonly ok: true; readonly value: string | number | boolean }
  | { readonly ok: false; readonly wanted: string };

const INTEGER = /^-?(?:0|[1-9]\d*)$/;

/**
 * Digits and `true` or `false` become a number and a boolean where the schema wants one. Every
 * other text stays as it is.
 */
export function typedText(text: string, steps: readonly Member['key'][]): TypedText {
  const node = schemaAt(steps);
  const types = node?.type ?? typeof node?.const;
  const takes = (type: string): boolean => (typeof types === 'string' ? types === type : types.includes(type));
  const { description = '' } = node ?? {};
  const wanted = (form: string) =>
    ({ ok: false, wanted: ['', form].includes(description) ? form : `${description}: ${form}` }) as const;
  if (takes('integer') || takes('number')) {
    if (INTEGER.test(text) && Number.isSafeInteger(Number(text))) return { ok: true, value: Number(text) };
    return wanted(`a whole number${exampleOf(node?.default)}`);
  }
  if (!takes('boolean')) return { ok: true, value: text };
  return text === 'true' || text === 'false' ? { ok: true, value: text === 'true' } : wanted('true or false');
}

function exampleOf(usual: unknown): string {
  return typeof usual === 'number' ? ` such as ${usual}` : '';
}
