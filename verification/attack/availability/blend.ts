/**
 * The kinds of calls: a free resource, a priced one without a proof, or with a fresh proof of
 * payment.
 */
export const CALL_KINDS = ['free', 'challenge', 'paid'] as const;
export type CallKind = (typeof CALL_KINDS)[number];

/** The status of an answer that serves such a call. */
export const SERVED: Readonly<Record<CallKind, number>> = { free: 200, challenge: 402, paid: 200 };

/**
 * The kinds of ten calls, repeated in this order: the same share of each in every second of a run.
 */
export const BLENDS = {
  free: ['free'],
  challenge: ['challenge'],
  paid: ['paid'],
  mix: ['free', 'free', 'challenge', 'free', 'free', 'paid', 'free', 'free', 'challenge', 'free'],
} as const satisfies Readonly<Record<string, readonly CallKind[]>>;
export type BlendName = keyof typeof BLENDS;

/** Reads the name of a blend; `all`: every one. @throws Error that lists the known ones */
export function blendsOf(name: string): readonly BlendName[] {
  const names = Object.keys(BLENDS) as BlendName[];
  if (name === 'all') return names;
  const found = names.find((known) => known === name);
  if (found === undefined) throw new Error(`--call: ${name} is none of ${names.join(', ')}, all`);
  return [found];
}
