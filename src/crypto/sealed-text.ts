import type { KeyRing } from './key-ring.ts';
import type { SealContext } from './seal.ts';

/** Before the base64url of sealed bytes. JSON and hexadecimal text never begin like this. */
const MARK = 'sealed:1:';

/** Whether a text is sealed, so that what was stored without keys is still read as it is. */
export function isSealed(text: string): boolean {
  return text.startsWith(MARK);
}

/** The text sealed; one that is sealed already stays as it is. */
export function sealText(ring: KeyRing, text: string, context: SealContext): string {
  return isSealed(text) ? text : MARK + ring.seal(Buffer.from(text, 'utf8'), context).toString('base64url');
}

/** The text that was sealed, or a text that never was; undefined when it cannot be opened, as without a ring. */
export function openText(ring: KeyRing | undefined, text: string, context: SealContext): string | undefined {
  if (!isSealed(text)) return text;
  return ring?.open(Buffer.from(text.slice(MARK.length), 'base64url'), context)?.toString('utf8');
}
