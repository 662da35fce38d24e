/**
 * A second reader of presentations, made of `node:crypto` alone: signatures, digests and bindings
 * as RFC 9901 and the AP2 documents describe them. It finds an error that maker and verifier share.
 */

import { createHash, createPublicKey, verify } from 'node:crypto';

export interface Read {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
  /** The mandate with all its disclosures put in. */
  readonly mandate: Record<string, unknown> | undefined;
  readonly sdHash: string;
  readonly jwt: string;
  /** The key of its signer: given for the root, named by the token before for all others. */
  readonly jwk: Jwk;
}

export const hashed = (text: string): string => createHash('sha256').update(text).digest('base64url');
const json = (part: string | undefined): unknown =>
  JSON.parse(Buffer.from(part ?? '', 'base64url').toString('utf8')) as unknown;

/** Public members of a key. */
export interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
}

/** What each algorithm hashes first; EdDSA does so itself. */
const DIGESTS: Readonly<Record<string, string | null>> = {
  ...{ ES256: 'sha256', ES384: 'sha384', ES256K: 'sha256', EdDSA: null },
};

/** @throws Error when a signature, a digest or a binding is wrong */
export function readPresentation(text: string, rootJwk: Jwk): readonly Read[] {
  const raw = text.split('~~');
  const read: Read[] = [];
  let jwk = rootJwk;
  for (const [at, piece] of raw.entries()) {
    const segment = at === raw.length - 1 ? piece : `${piece}~`;
    if (!segment.endsWith('~')) throw new Error(`segment ${at} does not end in ~`);
    const one = readSegment(segment, jwk, at);
    const before = read.at(-1);
    if (before !== undefined && one.claims['sd_hash'] !== before.sdHash)
      throw new Error(`segment ${at} is for another`);
    read.push(one);
    const cnf = (one.mandate ?? one.claims)['cnf'] as { readonly jwk: Jwk } | undefined;
    if (cnf !== undefined) jwk = cnf.jwk;
  }
  return read;
}

function readSegment(segment: string, jwk: Jwk, at: number): Read {
  const [jwt = '', ...texts] = segment.slice(0, -1).split('~');
  const [head, body, signature] = jwt.split('.');
  const key = createPublicKey({ key: { ...jwk }, format: 'jwk' });
  const header = json(head) as Record<string, unknown>;
  const digest = DIGESTS[String(header['alg'])];
  if (digest === undefined) throw new Error(`segment ${at} is signed with an unknown algorithm`);
  const good = verify(
    digest,
    Buffer.from(`${head}.${body}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature ?? '', 'base64url'),
  );
  if (!good) throw new Error(`segment ${at} was not signed with that key`);
  const hidden = new Map(texts.filter((one) => one !== '').map((one) => [hashed(one), json(one) as unknown[]]));
  const claims = resolved(json(body), hidden) as Record<string, unknown>;
  if (hidden.size > 0) throw new Error(`segment ${at} has disclosures that nothing refers to`);
  const [mandate] = (claims['delegate_payload'] ?? []) as readonly Record<string, unknown>[];
  return { header, claims, mandate, sdHash: hashed(segment), jwt, jwk };
}

/** Puts disclosures in; each is taken out of the map as it is used. */
function resolved(value: unknown, hidden: Map<string, unknown[]>): unknown {
  if (Array.isArray(value)) return value.flatMap((item: unknown) => element(item, hidden));
  if (value === null || typeof value !== 'object') return value;
  const { _sd = [], ...plain } = value as { readonly _sd?: readonly string[] };
  const shown = _sd.map((digest) => taken(hidden, digest)).filter((one) => one !== undefined);
  const members = [...Object.entries(plain), ...shown.map(([, name, member]) => [String(name), member] as const)];
  return Object.fromEntries(members.map(([name, member]) => [name, resolved(member, hidden)]));
}

function element(item: unknown, hidden: Map<string, unknown[]>): readonly unknown[] {
  const digest = item !== null && typeof item === 'object' && '...' in item ? String(item['...']) : undefined;
  if (digest === undefined) return [resolved(item, hidden)];
  const found = taken(hidden, digest);
  return found === undefined ? [] : [resolved(found[1], hidden)];
}

function taken(hidden: Map<string, unknown[]>, digest: string): unknown[] | undefined {
  const found = hidden.get(digest);
  hidden.delete(digest);
  return found;
}
