import type { KeysById } from './issuer.ts';
import { readPublicKey } from './keys.ts';
import { readMultikey } from './multibase.ts';

const PREFIX = 'did:key:';

/** Whether an issuer's name is its key. */
export function isDidKey(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** The key in a `did:key`, under the names that a token may call it by; undefined when it cannot be read. Nobody is asked. */
export function keysOfDidKey(did: string): KeysById | undefined {
  const name = did.slice(PREFIX.length);
  const jwk = readMultikey(name);
  if (jwk === undefined) return undefined;
  const reading = readPublicKey(jwk);
  return reading.ok ? new Map([`${did}#${name}`, `#${name}`].map((kid) => [kid, reading.key])) : undefined;
}
