import { createHash } from 'node:crypto';
import { RecentMap } from '../../time/recent-map.ts';
import type { Time } from '../../time/time.ts';
import type { ProvenVerdict, Unproven } from '../x402/verify/verify.ts';
import { createSlots } from './slots.ts';

/**
 * Questions about signatures that are under way. Few, because a stranger causes them for nothing; a wallet that is deployed answers in the
 * time of one call to a node. Whoever signs with a key of his own is never asked about, so none of this can keep him waiting.
 */
const BOUNDS = { each: 2, eachWaiting: 32, all: 6, waitMs: 3_000 } as const;
/** Signatures that were found good and need no second question, each under 150 bytes. Only good ones: others are free to make. */
const REMEMBERED = 10_000;

/** What came of the signatures that only a chain or a facilitator can verify; for the metrics. */
type UnprovenCount = Record<'proven' | 'refused' | 'unavailable' | 'crowded', number>;

/** Has signatures verified that this process cannot verify by itself, within a budget for each network of clients and for all. */
export interface UnprovenSignatures {
  readonly count: Readonly<UnprovenCount>;
  /** `network`: whose budget it comes out of. `crowded`: the budget is used up at the moment. */
  verdictOn(network: string, unproven: Unproven): Promise<ProvenVerdict | { readonly kind: 'crowded' }>;
}

export function createUnprovenSignatures(time?: Time): UnprovenSignatures {
  const places = createSlots(BOUNDS, time);
  const proven = new RecentMap<Extract<ProvenVerdict, { readonly kind: 'genuine' }>>(REMEMBERED);
  const asking = new Map<string, Promise<ProvenVerdict | { readonly kind: 'crowded' }>>();
  const count: UnprovenCount = { proven: 0, refused: 0, unavailable: 0, crowded: 0 };

  const ask = async (network: string, name: string, { prove }: Unproven) => {
    const verdict = await places.within<ProvenVerdict | { readonly kind: 'crowded' }>(
      network,
      prove,
      async () => CROWDED,
    );
    count[verdict.kind === 'genuine' ? 'proven' : verdict.kind] += 1;
    if (verdict.kind === 'genuine' && proven.use(name) === undefined) proven.add(name, verdict);
    return verdict;
  };
  return {
    count,
    async verdictOn(network, unproven) {
      const name = nameOf(unproven);
      const known = proven.use(name) ?? asking.get(name);
      if (known !== undefined) return known;
      // Copies of one proof are one question.
      const question = ask(network, name, unproven).finally(() => asking.delete(name));
      asking.set(name, question);
      return question;
    },
  };
}

const CROWDED = { kind: 'crowded' } as const;

/** What was signed, by whom, and how: two texts with one name have one answer. */
function nameOf({ proof }: Unproven): string {
  const { authorization, signature } = proof.payload.payload;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return createHash('sha256')
    .update([from, to, value, validAfter, validBefore, nonce, signature].join('|'))
    .digest('base64url');
}
