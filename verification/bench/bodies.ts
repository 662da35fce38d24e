/** The bodies of several sizes that calls are measured with. */

import { AGENT_HEADERS, FROM_BACKEND, type Question } from './contestant.ts';

/** A body of about so many bytes. */
export interface BodySize {
  readonly name: string;
  readonly title: string;
  readonly bytes: number;
}

export const BODY_SIZES: readonly BodySize[] = [
  { name: '100', title: '0.1 KB', bytes: 100 },
  { name: '1k', title: '1 KB', bytes: 1_000 },
  { name: '16k', title: '16 KB', bytes: 16_000 },
  { name: '64k', title: '64 KB', bytes: 64_000 },
  { name: '250k', title: '250 KB', bytes: 250_000 },
];

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

/** A call whose body has about `bytes` bytes. */
export function textQuestion(path: string, { bytes }: Pick<BodySize, 'bytes'>): Question {
  const whole = Math.floor(bytes / PARAGRAPH_BYTES);
  const rest = PARAGRAPH.slice(
    0,
    Math.max(0, bytes - whole * PARAGRAPH_BYTES - JSON.stringify({ paragraphs: [] }).length),
  );
  const paragraphs = [...Array.from({ length: whole }, () => PARAGRAPH), rest];
  return { path, headers: AGENT_HEADERS, body: JSON.stringify({ paragraphs }), expect: 200, holds: FROM_BACKEND };
}
