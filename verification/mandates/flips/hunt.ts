/** Presents damaged headers to a verifier and counts what it accepts as new. */

import { mapRows } from '../../../spec/mandates/register/register-map.ts';
import { createMint, type Mint } from '../../../spec/support/ap2/mint.ts';
import { NOW } from '../../../spec/support/ap2/purchase.ts';
import type { MandateVerdict } from '../../../src/mandates/ap2/model/reasons.ts';
import { reserveUses } from '../../../src/mandates/register/register-table.ts';
import { chanceOf } from '../../chaos/sim/chance.ts';
import { damaged } from './damage.ts';

export interface Hunt {
  readonly seed: number;
  readonly count: number;
  /** The time limit, milliseconds; headers tried until then count. */
  readonly withinMs?: number;
}

export interface Findings {
  readonly tried: number;
  /** The number of refusals by reason. */
  readonly refused: ReadonlyMap<string, number>;
  /** Accepted as the mandate that was presented before. */
  readonly replayed: number;
  /** Accepted as new mandates. There must be none. */
  readonly found: readonly string[];
}

type Verify = (header: string) => Promise<MandateVerdict>;

/** One of every kind. */
export function headersOf(mint: Mint = createMint()): readonly string[] {
  const made = [
    mint.autonomous(),
    mint.autonomous({ payment: true }),
    mint.autonomous({ delegated: true, payment: true }),
    mint.direct({ payment: true }),
    mint.credential(),
  ];
  return made.map(({ header }) => header);
}

/**
 * Presents headers with one small fault each after the right ones were used. An accepted header
 * must be the used mandate, by its identities, and the register must report it as used. @throws
 * when a right header is refused, or the verifier throws
 */
export async function hunted(
  verify: Verify,
  headers: readonly string[],
  { seed, count, withinMs }: Hunt,
): Promise<Findings> {
  const chance = chanceOf(seed);
  const used = new Map(
    await Promise.all(headers.map(async (header) => [header, await usedUp(verify, header)] as const)),
  );
  const refused = new Map<string, number>();
  const found: string[] = [];
  let [tried, replayed] = [0, 0];
  const deadline = performance.now() + (withinMs ?? Number.POSITIVE_INFINITY);
  while (tried < count && performance.now() < deadline) {
    const right = chance.pick(headers);
    const { header, where } = damaged(right, chance);
    if (header === right) continue;
    tried += 1;
    const verdict = await verify(header);
    if (verdict.kind === 'refused') refused.set(verdict.reason, (refused.get(verdict.reason) ?? 0) + 1);
    else if (used.get(right)?.isKnown(verdict.claim) === true) replayed += 1;
    else found.push(`seed ${seed}, try ${tried}, ${where}: ${header}`);
  }
  return { tried, refused, replayed, found };
}

type Claim = Extract<MandateVerdict, { readonly kind: 'accepted' }>['claim'];

async function usedUp(verify: Verify, header: string): Promise<{ isKnown(claim: Claim): boolean }> {
  const verdict = await verify(header);
  if (verdict.kind !== 'accepted') throw new Error(`a right header is refused: ${verdict.reason}`);
  const rows = mapRows();
  const { claim } = verdict;
  if (reserveUses(rows, claim, NOW * 1_000) !== undefined) throw new Error('a right mandate cannot be used');
  const ids = identities(claim);
  return { isKnown: (other) => identities(other) === ids && reserveUses(rows, other, NOW * 1_000) === 'replayed' };
}

function identities({ once, open }: Claim): string {
  return JSON.stringify([once.toSorted(), open.map(({ id }) => id).sort()]);
}
