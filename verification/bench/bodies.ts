/** The long body that calls are measured with. */

import { AGENT_HEADERS, FROM_BACKEND, type Question } from './contestant.ts';

const BODY_BYTES = 64_000;

/** A paragraph of a document, about 500 bytes as JSON, with the escapes that texts have. */
const PARAGRAPH = `${'Prices of the day in Berlin and Hamburg, firm until noon and before fees of the market. '.repeat(5)}\n"EUR" only, lots of twelve.`;
const PARAGRAPH_BYTES = JSON.stringify(PARAGRAPH).length + 1;

/** The schema of `textQuestion`: the paragraphs of a document. */
export const TEXT_SCHEMA = {
  type: 'object',
  properties: { paragraphs: { type: 'array', maxItems: 1_000, items: { type: 'string', maxLength: 1_000 } } },
  required: ['paragraphs'],
  additionalProperties: false,
} as const;

/** A call whose body has about 64 KB. */
export function textQuestion(path: string): Question {
  const paragraphs = Array.from({ length: Math.floor(BODY_BYTES / PARAGRAPH_BYTES) }, () => PARAGRAPH);
  return { path, headers: AGENT_HEADERS, body: JSON.stringify({ paragraphs }), expect: 200, holds: FROM_BACKEND };
}
