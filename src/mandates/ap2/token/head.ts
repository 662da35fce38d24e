import { Refused } from '../model/reasons.ts';
import { readToken, type Token } from './jws.ts';

/** Where in a chain a token stands; its `typ` must agree (ap2 3). */
export type Position = 'root' | 'handed_on' | 'closing';

/** Roots as they are met in practice, and hops in the spelling of the SDK and of the draft. */
const TYPES: Readonly<Record<Position, ReadonlySet<unknown>>> = {
  root: new Set(['dc+sd-jwt', 'vc+sd-jwt', 'sd+jwt', 'example+sd-jwt']),
  handed_on: new Set(['kb+sd-jwt+kb', 'kb-sd-jwt+kb']),
  closing: new Set(['kb+sd-jwt', 'kb-sd-jwt']),
};

/**
 * Opens the token of a segment (ap2 7.6, step 5). Keys in the header (`jwk`, `jku`, `x5u`) are ignored.
 * @throws Refused
 */
export function openToken(jwt: string, position: Position, algorithms: ReadonlySet<unknown>): Token {
  const reading = readToken(jwt);
  if (!reading.ok) throw new Refused(reading.reason);
  const { alg, typ, crit, b64 } = reading.token.header;
  // RFC 7515, section 4.1.11: extensions that are not understood. None is, and `b64` would change what was signed.
  if (crit !== undefined || b64 !== undefined) throw new Refused('unsupported_algorithm');
  if (!algorithms.has(alg)) throw new Refused('unsupported_algorithm');
  if (!TYPES[position].has(typ)) throw new Refused('unexpected_typ');
  return reading.token;
}
