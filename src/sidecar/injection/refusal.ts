/** Refuses a pod in words: thrown inside injection, and answered by it. */

/** Longest warning that Kubernetes shows, characters; refusals keep to it too. */
const MAX_SENTENCE = 256;
/** Longest part of a pod's own text that a sentence repeats, characters. */
const MAX_QUOTED = 48;

/** The pod cannot take the gateway; the message says what would be right. */
export class Refusal extends Error {
  constructor(message: string) {
    super(sentence(message));
    this.name = 'Refusal';
  }
}

/** The text within the limit of Kubernetes. */
export function sentence(text: string): string {
  return text.length <= MAX_SENTENCE ? text : `${text.slice(0, MAX_SENTENCE - 1)}…`;
}

/** A pod's own text inside a sentence. */
export function quoted(text: unknown): string {
  const whole = JSON.stringify(String(text));
  return whole.length <= MAX_QUOTED ? whole : `${whole.slice(0, MAX_QUOTED - 2)}…"`;
}
