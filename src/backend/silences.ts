/** Paid calls that got no answer, as evidence against their payer, resource or backend. */

import type { Sale } from './exchange.ts';

/** So many payers without an answer put their resource, or the backend, in doubt. */
export const SILENT_PAYERS = 3;
/** So many unanswered payments of one payer stop its own next ones for a while. */
const SILENT_PAYMENTS = 3;
/** How long a payer without an answer leaves the place in doubt to others, milliseconds. */
const OTHERS_FIRST_MS = 5_000;
/** Payers that a resource remembers; each has paid. */
const MOST_PAYERS = 64;

interface SilentPayer {
  readonly payments: Set<string>;
  /** When its last request was written, and when that was given up; milliseconds. */
  writtenAt: number;
  endedAt: number;
}

interface SoldResource {
  /** When a paid call of it was answered, milliseconds. */
  answeredAt: number;
  /** Payers without an answer since then. */
  readonly payers: Map<string, SilentPayer>;
}

/**
 * Counts silences by payer, because one with an input that hangs makes any number of them; then by
 * resource, because such an input belongs to one; and only then against the backend. A silence does
 * not count where another call was answered meanwhile: then it tells of its own input.
 */
export class Silences {
  readonly #resources = new Map<string, SoldResource>();

  /** The head of an answer came for a paid call. */
  answered({ resourceId }: Sale, now: number): void {
    const resource = this.#of(resourceId);
    resource.answeredAt = now;
    if (resource.payers.size > 0) resource.payers.clear();
  }

  /** A payment counts once, however often its delivery is tried. */
  add({ payId, payer, resourceId }: Sale, writtenAt: number, now: number): void {
    const { answeredAt, payers } = this.#of(resourceId);
    const name = payer.toLowerCase();
    const silent = payers.get(name) ?? { payments: new Set(), writtenAt, endedAt: now };
    if (writtenAt < answeredAt || silent.payments.has(payId)) return;
    if (silent.payments.size < SILENT_PAYMENTS) silent.payments.add(payId);
    silent.writtenAt = writtenAt;
    silent.endedAt = now;
    payers.set(name, silent);
    const [oldest] = payers.keys();
    if (payers.size > MOST_PAYERS && oldest !== undefined) payers.delete(oldest);
  }

  /** Whether payers of several resources got no answer since the backend's last one. */
  ofBackend(answeredAt: number): boolean {
    const silent = [...this.#resources.values()].map(({ payers }) =>
      [...payers].filter(([, { writtenAt }]) => writtenAt >= answeredAt).map(([payer]) => payer),
    );
    const payers = new Set(silent.flat());
    return payers.size >= SILENT_PAYERS && silent.filter(({ length }) => length > 0).length > 1;
  }

  /**
   * Whether money may be taken for a sale. `running`: paid calls of its resource under way.
   * `onTrust`: nothing is known of the backend, so the payers that got an answer go first.
   */
  allows({ payer, resourceId }: Sale, running: number, onTrust: boolean): boolean {
    const payers = this.#resources.get(resourceId)?.payers;
    if (payers === undefined || payers.size === 0) return true;
    const inDoubt = payers.size >= SILENT_PAYERS;
    if (inDoubt && running > 0) return false;
    const silent = payers.get(payer.toLowerCase());
    if (silent === undefined || !(inDoubt || onTrust || silent.payments.size >= SILENT_PAYMENTS)) return true;
    return performance.now() - silent.endedAt >= OTHERS_FIRST_MS;
  }

  #of(resourceId: string): SoldResource {
    const found = this.#resources.get(resourceId);
    if (found !== undefined) return found;
    const made = { answeredAt: Number.NEGATIVE_INFINITY, payers: new Map() };
    this.#resources.set(resourceId, made);
    return made;
  }
}
