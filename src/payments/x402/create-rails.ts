/**
 * Opens the rails of all entries of `payments.x402` and puts them behind one. A payment goes to the
 * rail of its own network and asset alone, so no facilitator and no node sees one of another.
 */

import { inTime } from '../../time/time.ts';
import type { RailFault } from '../rail.ts';
import { createRail, type X402Rail } from './create-rail.ts';
import { isPaidIn, whyElsewhere } from './wire/offers.ts';
import type { X402Config } from './wire/settings.ts';
import type { FaultLog, PaymentRequirements } from './wire/types.ts';

/** Longest check of one rail, milliseconds: below the deadline of readiness for all together. */
const CHECK_DEADLINE_MS = 900;
/** The result of a check that misses its deadline. */
const LATE: RailFault = { found: 'unreachable', cause: 'no answer in time' };
const NONE: ReadonlySet<number> = new Set();

/**
 * Opens the rail of each entry, at least one. One entry gets no wrapper. Where one of several
 * cannot be opened the others are closed again.
 * @param open opens the rail of one entry
 * @throws AssetMismatch where there is one entry; else Error that names the network
 */
export async function createRails(
  entries: readonly X402Config[],
  log: FaultLog,
  open: typeof createRail = createRail,
): Promise<X402Rail> {
  const [first, ...others] = entries;
  if (first === undefined) throw new Error('payments.x402 has no entry');
  if (others.length === 0) return open(first, log);
  const opening = await Promise.allSettled(entries.map((entry) => open(entry, logOf(log, entry))));
  const rails = opening.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  for (const [at, result] of opening.entries()) {
    if (result.status === 'fulfilled') continue;
    await Promise.all(rails.map((rail) => rail.close()));
    throw new Error(`${entries[at]?.network}: ${(result.reason as Error).message}`, { cause: result.reason });
  }
  return joined(
    rails.flatMap((rail, at) => {
      const entry = entries[at];
      return entry === undefined ? [] : [{ entry, rail }];
    }),
    log,
  );
}

/** An entry with its open rail. */
interface Part {
  readonly entry: X402Config;
  readonly rail: X402Rail;
}

function joined(parts: readonly Part[], log: FaultLog): X402Rail {
  type PaidIn = Pick<PaymentRequirements, 'network' | 'asset'>;
  const railOf = (offer: PaidIn): X402Rail | undefined => parts.find(({ entry }) => isPaidIn(offer, entry))?.rail;
  const elsewhere = (offer: PaidIn): { readonly cause: string } => {
    const entries = parts.map(({ entry }) => entry);
    return { cause: `${whyElsewhere(offer, entries)}` };
  };
  const health = watchParts(parts, log);
  return {
    facilitator: parts.every(({ rail }) => rail.facilitator === 'local') ? 'local' : 'remote',
    // Without a rail `reconcile` tells that nothing is known, which refuses nothing.
    seesChain: (offer) => railOf(offer)?.seesChain(offer) !== false,
    async verify(proof, offer) {
      return railOf(offer)?.verify(proof, offer) ?? { kind: 'unavailable', ...elsewhere(offer) };
    },
    async settle(proof, offer, ...more) {
      return railOf(offer)?.settle(proof, offer, ...more) ?? { kind: 'uncertain', ...elsewhere(offer) };
    },
    async reconcile(proof, offer, history) {
      return railOf(offer)?.reconcile(proof, offer, history) ?? { kind: 'unknown', ...elsewhere(offer) };
    },
    async markOf(transaction, proof, offer) {
      return railOf(offer)?.markOf?.(transaction, proof, offer);
    },
    async sentBack(proof, offer) {
      return (await railOf(offer)?.sentBack?.(proof, offer)) === true;
    },
    // A record may be of a network that is gone: its payId differs from each one here.
    examine(candidate) {
      const rail = railOf(candidate.offer) ?? parts[0]?.rail;
      if (rail === undefined) throw new Error(elsewhere(candidate.offer).cause);
      return rail.examine(candidate);
    },
    renew(entries, entryOf) {
      for (const [at, { rail }] of parts.entries()) rail.renew(entries.slice(at, at + 1), entryOf);
      health.renew(entries);
    },
    check: health.check,
    away: health.away,
    perNetwork: parts.map(({ entry: { network }, rail }) => ({ ...rail, network })),
    async close() {
      await Promise.all(parts.map(({ rail }) => rail.close()));
    },
  };
}

/** Checks all rails at once, and keeps which of them are unreachable. */
function watchParts(parts: readonly Part[], log: FaultLog) {
  const checks = parts.map(({ rail }) => bounded(() => rail.check()));
  let offered = parts.map(({ entry }) => entry.offered);
  let unreachable = NONE;
  /** Whether no offered entry is reachable. */
  const allAway = (): boolean => {
    const sold = [...parts.keys()].filter((at) => offered[at] === true || !offered.includes(true));
    return sold.every((at) => unreachable.has(at));
  };
  /** Made by each check: every 402 reads it. */
  let away = NONE;
  return {
    renew(entries: readonly Pick<X402Config, 'offered'>[]): void {
      offered = entries.map((entry) => entry.offered);
      away = allAway() ? NONE : unreachable;
    },
    away: () => away,
    async check(): Promise<RailFault | undefined> {
      const found = await Promise.all(checks.map((check) => check()));
      const before = unreachable;
      unreachable = new Set(found.flatMap((fault, at) => (fault?.found === 'unreachable' ? [at] : [])));
      away = allAway() ? NONE : unreachable;
      const causes: string[] = [];
      for (const [at, { entry }] of parts.entries()) {
        const { network, asset } = entry;
        const fault = found[at];
        if (fault !== undefined) causes.push(`${network}: ${fault.cause}`);
        if (before.has(at) === unreachable.has(at)) continue;
        if (before.has(at)) log.info({ network, asset }, 'a network of payments.x402 is reachable again');
        else log.warn({ network, asset, cause: fault?.cause }, 'a network of payments.x402 is unreachable');
      }
      if (causes.length === 0) return undefined;
      return { found: allAway() ? 'unreachable' : 'degraded', cause: causes.join('; ') };
    },
  };
}

/** One check at a time, each with a deadline: a rail that hangs takes no other one with it. */
function bounded(check: X402Rail['check']): X402Rail['check'] {
  let runs = false;
  return async () => {
    if (runs) return LATE;
    runs = true;
    const found = check().finally(() => {
      runs = false;
    });
    return inTime(found, CHECK_DEADLINE_MS, () => LATE).catch((thrown: unknown): RailFault => {
      return { found: 'unreachable', cause: String(thrown) };
    });
  };
}

function logOf(log: FaultLog, { network }: X402Config): FaultLog {
  return {
    info: (facts, message) => log.info({ network, ...facts }, message),
    warn: (facts, message) => log.warn({ network, ...facts }, message),
  };
}
