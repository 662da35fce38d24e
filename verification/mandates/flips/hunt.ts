/** Presents damaged headers to a verifier and counts what it accepts as new. */

import { mapRows } from '../../../spec/mandates/claims.ts';
import { createMint, type Mint } from '../../../spec/support/ap2/mint.ts';
import { NOW } from '../../../spec/support/ap2/purchase.ts';
import type { MandateVerdict } from '../../../src/mandates/ap2/reasons.ts';
import { reserveUses } from '../../../src/mandates/register.ts';
import { type Chance, chanceOf } from '../../chaos/sim/chance.ts';

interface Hunt {
  readonly seed: number;
  readonly count: number;
  /** The time limit, milliseconds; headers tried until then count. */
  readonly withinMs?: number;
}

interface Findings {
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

/** A header with one small fault, and its position. */
interface Damaged {
  readonly header: string;
  readonly where: string;
}

/**
 * One byte changed, one bit, one byte gone or one more: in the header as it travels, in the JSON
 * under it, or in one part of one token and then encoded anew, so that the fault passes the checks
 * of spelling.
 */
function damaged(header: string, chance: Chance): Damaged {
  const level = chance.below(3);
  if (level === 0) return { header: latin(hurt(Buffer.from(header, 'latin1'), chance)), where: 'header' };
  const envelope = Buffer.from(header, 'base64url');
  if (level === 1) return { header: hurt(envelope, chance).toString('base64url'), where: 'envelope' };
  const { payload, payment_mandate: payment, ...rest } = JSON.parse(envelope.toString('utf8')) as Envelope;
  if (payment === undefined || chance.happens(0.5)) {
    const one = damagedPart(payload, chance);
    const changed = { ...rest, payload: one.text, ...(payment === undefined ? {} : { payment_mandate: payment }) };
    return { header: encoded(changed), where: `checkout ${one.where}` };
  }
  const one = damagedPart(payment, chance);
  return { header: encoded({ ...rest, payload, payment_mandate: one.text }), where: `payment ${one.where}` };
}

interface Envelope {
  readonly payload: string;
  readonly payment_mandate?: string;
}

/** A part of a token or a disclosure: the text between dots and tildes. */
function damagedPart(presentation: string, chance: Chance): { readonly text: string; readonly where: string } {
  const pieces = presentation.split(/([.~]+)/);
  const full = [...pieces.keys()].filter((at) => at % 2 === 0 && pieces[at] !== '');
  const at = chance.pick(full);
  const part = hurt(Buffer.from(pieces[at] ?? '', 'base64url'), chance).toString('base64url');
  return { text: pieces.with(at, part).join(''), where: `part ${full.indexOf(at)} of ${full.length}` };
}

/** White space between the tokens of JSON: a fault that changes nothing. */
const SPACES = [...Buffer.from(' \t\n')];

function hurt(bytes: Buffer, chance: Chance): Buffer {
  // The first byte more often than its share: a space before it is harmless, nothing else is.
  const at = chance.happens(0.1) ? 0 : chance.below(bytes.length);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + 1)];
  const was = bytes[at] ?? 0;
  switch (chance.below(4)) {
    case 0:
      return Buffer.concat([before, Buffer.of((was + 1 + chance.below(255)) % 256), after]);
    case 1:
      return Buffer.concat([before, Buffer.of(was ^ (1 << chance.below(8))), after]);
    case 2:
      return Buffer.concat([before, after]);
    default:
      return Buffer.concat([
        before,
        Buffer.of(chance.happens(0.5) ? chance.pick(SPACES) : chance.below(256), was),
        after,
      ]);
  }
}

function latin(bytes: Buffer): string {
  return bytes.toString('latin1');
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url');
}
