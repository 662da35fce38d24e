/** Lists every secret of a document, so that the log can mask echoes of peers. */

import { eachText } from './member.ts';

/** Shorter values are not masked, characters: they would hide ordinary text. */
const SHORTEST_SECRET = 8;
/** Shorter parts of a URL's path are names, not keys, characters. */
const SHORTEST_KEY_IN_PATH = 16;
/** 32 bytes as base64 or base64url. */
export const KEY_TEXT = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * Every value that the schema marks with `writeOnly`, in each spelling that a message may use.
 * Nothing of it is logged on purpose; the log masks it as a last resort.
 */
export function secretsIn(document: unknown): readonly string[] {
  const found = new Set<string>();
  eachText(document, (text, { writeOnly }) => {
    if (writeOnly === true) for (const one of spellings(text)) found.add(one);
  });
  return [...found].filter((secret) => secret.length >= SHORTEST_SECRET);
}

function spellings(secret: string): readonly string[] {
  // Line by line, because a message seldom echoes the whole PEM. In a variable \n ends its lines.
  if (secret.includes('-----BEGIN')) return secret.split(/\r?\n|\\n/).filter((line) => !line.startsWith('-----'));
  if (/^[a-z]+:\/\//i.test(secret) && URL.canParse(secret)) return urlSecrets(new URL(secret));
  const bytes = Buffer.from(KEY_TEXT.test(secret) ? secret : '', 'base64');
  const asKey = [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
  return [secret, secret.replace(/^0x/, ''), ...asKey];
}

/** Passwords, and the long parts of path and query where node providers put their keys. */
function urlSecrets({ password, searchParams, pathname }: URL): readonly string[] {
  const inPath = pathname.split('/').filter((part) => part.length >= SHORTEST_KEY_IN_PATH);
  return [password, decodeURIComponent(password), ...searchParams.values(), ...inPath];
}
