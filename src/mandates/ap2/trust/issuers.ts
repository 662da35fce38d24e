/** The trusted issuers of a running gateway: static keys, remote keys, certificates (ap2 7.5). */

import { keysOfDidDocument } from './did-web.ts';
import type { FoundKey, IssuerSettings, KeyChoice, KeySource, TrustedIssuers, VerificationKey } from './issuer.ts';
import { createRemoteKeys, KeysUnavailable, keysOfJwks, type RemoteKeys } from './jwks.ts';
import type { KeyFetcher } from './key-fetch.ts';
import { createChainKeys } from './x5c.ts';

/** State of the keys in the words of readiness: degraded still serves. `cause` is for the log. */
export type TrustHealth =
  | { readonly found: 'ok' }
  | { readonly found: 'degraded' | 'unreachable'; readonly cause: string };

/** The issuers of a running gateway. */
export interface IssuerTrust extends TrustedIssuers {
  /** Waits for a running first fetch. */
  check(): Promise<TrustHealth>;
  /** Fetched keys, by where they are fetched: other issuers may go on with them. */
  readonly remotes: ReadonlyMap<string, RemoteKeys>;
  /** Ends the fetches, but for those that `next` goes on with. */
  close(next?: Pick<IssuerTrust, 'remotes'>): void;
}

interface TrustParts {
  readonly fetcher: Pick<KeyFetcher, 'fetch'>;
  /** The fetched keys of issuers that this takes the place of. */
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
  const byId = new Map(issuers.map((settings) => [settings.id, openIssuer(settings, parts)]));
  const byKid = new Map(
    [...byId.values()].flatMap((issuer) => keyIds(issuer.settings).map((kid) => [kid, issuer] as const)),
  );
  const remotes = [...byId].flatMap(([id, { remote }]) => (remote === undefined ? [] : [{ id, remote }]));
  const bySource = new Map(
    [...byId.values()].flatMap(({ settings, remote }) =>
      remote === undefined ? [] : [[nameOf(settings.source), remote] as const],
    ),
  );
  return {
    remotes: bySource,
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

/** Names where keys are fetched. A document of keys is read as its source says. */
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
