/**
 * The issuers that the configuration trusts, and in a running gateway their keys: static ones,
 * remote ones, certificates (ap2 7.5).
 */

import type { X509Certificate } from 'node:crypto';
import type { JsonObject } from '../../json/json.ts';
import { keysOfDidDocument } from './did.ts';
import { type KeysById, keysOfJwks, readStaticKeys, type VerificationKey } from './keys.ts';
import { createRemoteKeys, type KeyFetcher, KeysUnavailable, type RemoteKeys } from './remote-keys.ts';
import { createChainKeys } from './x5c.ts';

/** The source of an issuer's keys: one for each issuer, so that no two can disagree. */
export type KeySource =
  /** Configured, or in the issuer's name itself (`did:key`). */
  | { readonly kind: 'static'; readonly keys: KeysById }
  | { readonly kind: 'jwks'; readonly url: string }
  | { readonly kind: 'did-web'; readonly did: string; readonly url: string }
  /** Certificates in the head of the token; their leaf is for `host`. */
  | { readonly kind: 'x5c'; readonly host: string; readonly roots: readonly X509Certificate[] };

/** One issuer that the operator trusts. */
export interface IssuerSettings {
  /** `iss`, exact text. */
  readonly id: string;
  readonly role: IssuerRole;
  /** Whether its tokens may come without `iss`. Static keys only. */
  readonly allowKidOnly: boolean;
  readonly source: KeySource;
}

/** The role of an issuer: it roots mandates, unless types of credentials are listed. */
export function roleOf(credentialVct: readonly string[] | undefined): IssuerRole {
  return credentialVct === undefined ? { kind: 'mandates' } : { kind: 'credentials', vct: new Set(credentialVct) };
}

/** An issuer with known public keys (JWKs). @throws Error that names what is wrong with a key */
export function staticIssuer(issuer: {
  readonly id: string;
  readonly keys: readonly JsonObject[];
  readonly credentialVct?: readonly string[] | undefined;
  readonly allowKidOnly?: boolean | undefined;
}): IssuerSettings {
  const { keys, faults } = readStaticKeys(issuer.keys);
  const [fault] = faults;
  if (fault !== undefined) throw new Error(`key ${fault.index} of ${issuer.id} ${fault.message}`);
  return {
    id: issuer.id,
    role: roleOf(issuer.credentialVct),
    allowKidOnly: issuer.allowKidOnly ?? false,
    source: { kind: 'static', keys },
  };
}

/** The names of its key in a root token. They only choose among the trusted keys. */
export interface KeyChoice {
  readonly iss: string | undefined;
  readonly kid: string | undefined;
  /** Standard base64 of DER certificates, leaf first. */
  readonly x5c: readonly string[] | undefined;
}

/** Roots that an issuer may sign: mandates, or only credentials of these types (`vct`). */
export type IssuerRole =
  | { readonly kind: 'mandates' }
  | { readonly kind: 'credentials'; readonly vct: ReadonlySet<string> };

export type FoundKey =
  | { readonly kind: 'found'; readonly issuer: string; readonly role: IssuerRole; readonly key: VerificationKey }
  | { readonly kind: 'refused'; readonly reason: 'untrusted_issuer' | 'unknown_key' }
  /** There are no keys of this issuer, or only old ones, and none can be fetched now. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** `find` waits only when a remote issuer is asked for a key id. */
export interface TrustedIssuers {
  find(choice: KeyChoice): FoundKey | Promise<FoundKey>;
}

/** State of the keys in the words of readiness: degraded still serves. `cause` is for the log. */
export type TrustHealth =
  | { readonly found: 'ok' }
  | { readonly found: 'degraded' | 'unreachable'; readonly cause: string };

/** The issuers of a running gateway. */
export interface IssuerTrust extends TrustedIssuers {
  /** Waits for a running first fetch. */
  check(): Promise<TrustHealth>;
  /** Fetched keys by their source; the issuers of another configuration may go on with them. */
  readonly remotes: ReadonlyMap<string, RemoteKeys>;
  /** Ends the fetches, but for those that `next` goes on with. */
  close(next?: Pick<IssuerTrust, 'remotes'>): void;
}

interface TrustParts {
  readonly fetcher: Pick<KeyFetcher, 'fetch'>;
  /** The fetched keys of the issuers that the new ones replace. */
  readonly fetched?: ReadonlyMap<string, RemoteKeys>;
  /** Milliseconds since 1970: what certificates are checked with. */
  readonly wall?: () => number;
  /** Milliseconds of a monotonic clock: how old keys are. */
  readonly monotonic?: () => number;
}

interface Issuer {
  readonly settings: IssuerSettings;
  find(choice: KeyChoice): VerificationKey | undefined | Promise<VerificationKey | undefined>;
  readonly remote: RemoteKeys | undefined;
}

const UNTRUSTED: FoundKey = { kind: 'refused', reason: 'untrusted_issuer' };
const UNKNOWN: FoundKey = { kind: 'refused', reason: 'unknown_key' };

/**
 * Remote keys are fetched at once and renewed in the background. The configuration ensures that ids
 * of issuers differ, and key ids of issuers whose tokens may come without `iss`.
 */
export function createTrustedIssuers(issuers: readonly IssuerSettings[], parts: TrustParts): IssuerTrust {
  const opened = issuers.map((settings) => openIssuer(settings, parts));
  const byId = new Map(opened.map((issuer) => [issuer.settings.id, issuer]));
  const byKid = new Map(opened.flatMap((issuer) => keyIds(issuer.settings).map((kid) => [kid, issuer] as const)));
  const remotes = opened.flatMap(({ settings: { id, source }, remote }) =>
    remote === undefined ? [] : [{ id, name: nameOf(source), remote }],
  );
  return {
    remotes: new Map(remotes.map(({ name, remote }) => [name, remote])),
    find(choice) {
      const { iss, kid } = choice;
      const issuer = iss === undefined ? byKid.get(kid ?? '') : byId.get(iss);
      return issuer === undefined ? UNTRUSTED : findKey(issuer, choice);
    },
    async check() {
      const states = await Promise.all(remotes.map(async ({ id, remote }) => ({ id, ...(await remote.check()) })));
      const none = states.filter(({ found }) => found === 'none');
      const stale = states.filter(({ found }) => found === 'stale');
      // One unreachable issuer of several stops its own mandates only.
      if (none.length > 0 && none.length === byId.size)
        return { found: 'unreachable', cause: causeOf('no_keys', none) };
      const worse = [...none, ...stale];
      return worse.length === 0 ? { found: 'ok' } : { found: 'degraded', cause: causeOf('keys_stale', worse) };
    },
    close(next) {
      const kept = new Set(next?.remotes.values());
      for (const { remote } of remotes) if (!kept.has(remote)) remote.close();
    },
  };
}

function causeOf(what: string, states: readonly { readonly id: string; readonly cause: unknown }[]): string {
  const named = states.map(({ id, cause }) => `${id}${cause instanceof Error ? ` (${cause.message})` : ''}`);
  return `${what}: ${named.join(', ')}`;
}

/** The key ids that a token without `iss` may name. */
function keyIds({ allowKidOnly, source }: IssuerSettings): readonly string[] {
  return allowKidOnly && source.kind === 'static' ? [...source.keys.keys()] : [];
}

function findKey({ settings, find }: Issuer, choice: KeyChoice): FoundKey | Promise<FoundKey> {
  const { id, role } = settings;
  const answer = (key: VerificationKey | undefined): FoundKey =>
    key === undefined ? UNKNOWN : { kind: 'found', issuer: id, role, key };
  try {
    const key = find(choice);
    return key instanceof Promise ? key.then(answer, unavailable) : answer(key);
  } catch (error) {
    return unavailable(error);
  }
}

function unavailable(error: unknown): FoundKey {
  if (!(error instanceof KeysUnavailable)) throw error;
  return { kind: 'unavailable', cause: error };
}

function openIssuer(settings: IssuerSettings, parts: TrustParts): Issuer {
  const { source } = settings;
  const { wall = Date.now, monotonic = () => performance.now() } = parts;
  if (source.kind === 'x5c') {
    const keyOf = createChainKeys(source, wall);
    return { settings, remote: undefined, find: ({ x5c }) => (x5c === undefined ? undefined : keyOf(x5c)) };
  }
  if (source.kind === 'static') {
    const { keys } = source;
    return { settings, remote: undefined, find: ({ kid }) => (kid === undefined ? undefined : keys.get(kid)) };
  }
  const remote = parts.fetched?.get(nameOf(source)) ?? createRemoteKeys(() => load(source, parts.fetcher), monotonic);
  return { settings, remote, find: ({ kid }) => (kid === undefined ? undefined : remote.find(kid)) };
}

/** Names the source of fetched keys: kind, URL and DID, which decide how they are read. */
function nameOf(source: KeySource): string {
  if (!('url' in source)) return source.kind;
  return JSON.stringify([source.kind, source.url, 'did' in source ? source.did : '']);
}

async function load(
  source: Extract<KeySource, { url: string }>,
  fetcher: TrustParts['fetcher'],
): ReturnType<Parameters<typeof createRemoteKeys>[0]> {
  const document = await fetcher.fetch(source.url);
  return source.kind === 'jwks' ? keysOfJwks(document) : keysOfDidDocument(document, source.did);
}
