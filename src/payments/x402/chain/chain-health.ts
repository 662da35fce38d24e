import type { ChainFault, ChainFaultKind } from '../../rail.ts';
import type { Chain, Evidence, EvidenceQuery } from './chain.ts';
import { type HeadWatchDeps, watchHeads } from './head-watch.ts';

/** How long logs may come later than the state that they belong to, milliseconds: an index is written behind the blocks. */
export const LOGS_LAG_MS = 2_000;
/** Most payments without logs that are asked about again. */
const MOST_MISSING = 16;

/** What the readings of a chain say of the node that gave them. */
export interface ChainHealth {
  /** The chain, with every reading looked at. */
  readonly chain: Chain;
  /** What is wrong now, the most telling first; undefined when nothing is known to be. */
  fault(): ChainFault | undefined;
  /** Everything that is wrong now. */
  faults(): readonly ChainFault[];
  /** Asks again about payments whose logs were missing, which is how that fault ends: while it lasts no new payment is begun. */
  askAgain(): Promise<void>;
  /** A settlement of ours begins. The result ends it. */
  settling(): () => void;
  /** Milliseconds since a new head was first seen. Undefined before. */
  headAgeMs(): number | undefined;
}

interface Missing {
  readonly query: EvidenceQuery;
  readonly since: number;
  /** When it was last found so. */
  seen: number;
}

export function watchChain(bare: Chain, deps: HeadWatchDeps): ChainHealth {
  const { now = () => performance.now() } = deps;
  const heads = watchHeads(deps);
  /** By nonce. */
  const missing = new Map<string, Missing>();

  const note = (query: EvidenceQuery, evidence: Evidence): Evidence => {
    if (evidence.kind === 'unknown') {
      if (evidence.logsMissing !== true) return evidence;
      const known = missing.get(query.nonce);
      if (known !== undefined) known.seen = now();
      else if (missing.size < MOST_MISSING) missing.set(query.nonce, { query, since: now(), seen: now() });
    } else missing.delete(query.nonce);
    return evidence;
  };
  const chain: Chain = {
    ...bare,
    async readEvidence(query, deadlineMs) {
      return note(query, await bare.readEvidence(query, deadlineMs, heads.saw));
    },
    async head() {
      const head = await bare.head();
      heads.saw(head);
      return head;
    },
  };
  const withoutLogs = (): string | undefined => {
    const lasting = [...missing.values()].find(({ since, seen }) => seen - since >= LOGS_LAG_MS);
    return lasting && `the node shows transaction ${lasting.query.knownTransaction} as successful, without its logs`;
  };
  const faults = (): readonly ChainFault[] => {
    const causes = { clock: heads.clock(), stall: heads.stall(), missing: withoutLogs() };
    return Object.entries(causes).flatMap(([kind, cause]) =>
      cause === undefined ? [] : [{ kind: kind as ChainFaultKind, cause }],
    );
  };
  return {
    chain,
    faults,
    fault: () => faults()[0],
    async askAgain() {
      await Promise.all([...missing.values()].map(({ query }) => chain.readEvidence(query)));
    },
    settling: heads.settling,
    headAgeMs: heads.ageMs,
  };
}
