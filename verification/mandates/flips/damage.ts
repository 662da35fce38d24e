/** Puts one small fault into a right header. */

import type { Chance } from '../../chaos/sim/chance.ts';

/** A header with one small fault, and its position. */
export interface Damaged {
  readonly header: string;
  readonly where: string;
}

/**
 * One byte changed, one bit, one byte gone or one more: in the header as it travels, in the JSON
 * under it, or in one part of one token and then encoded anew, so that the fault passes the checks
 * of spelling.
 */
export function damaged(header: string, chance: Chance): Damaged {
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
