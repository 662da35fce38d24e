/** `storage`: Redis or SQLite, its bounds, and the keys that encrypt what is stored. */

import { X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import type { SealingKey, SealingKeys } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { RedisAddress, RedisNode, StorageConfig } from '../../store/port/settings.ts';
import { readRedisUrl } from '../../store/redis/url.ts';
import type { ConfigDocument } from '../document/document.ts';
import { pemCertificates } from '../document/parse.ts';
import { SecretUses } from './keys.ts';

type RedisDocument = NonNullable<ConfigDocument['storage']['redis']>;

const DAY_MS = 24 * 60 * 60 * 1_000;
const PATH = 'storage.redis';
const LONGEST_PORT = 65_535;
export const SEALING_KEYS = 'storage.sealing.keys';

/** For problems and warnings where there is no key. */
export const MAKE_A_KEY = 'make a key with: openssl rand -base64 32';

/** The configured engine, whatever is wrong with its settings. */
export type Engine = 'redis' | 'sqlite';

/** Undefined when the engine cannot be told. */
export function engineOf({ storage }: ConfigDocument, problems: ProblemList): Engine | undefined {
  if (!problems.readable('storage')) return undefined;
  return storage.redis === undefined ? 'sqlite' : 'redis';
}

/** The keys that can be used; also where another part of the section was refused. */
export function storageKeys({ storage }: ConfigDocument, problems: ProblemList): readonly SealingKey[] {
  if (!problems.readable(SEALING_KEYS) || storage.sealing === undefined) return [];
  const ids = new Set<string>();
  const uses = new SecretUses(problems);
  return storage.sealing.keys.flatMap((document, index) => {
    const path = memberPath(SEALING_KEYS, index);
    if (!problems.sound(path)) return [];
    const { id, key } = document;
    // Sealed text names its key's id.
    if (ids.has(id)) problems.add(`${path}.id`, 'is there already; each key needs a name of its own');
    ids.add(id);
    uses.note(`${path}.key`, key);
    // Reads base64 and base64url.
    return [{ id, key: Buffer.from(key, 'base64') }];
  });
}

/**
 * The keys that seal checkouts, none of which may be another secret of that section. Undefined:
 * there is no key at all; a problem explains how to make one.
 */
export function checkoutRing(
  ring: readonly SealingKey[],
  uses: SecretUses,
  problems: ProblemList,
): SealingKeys | undefined {
  const noted = new Set<string>();
  for (const [index, { key }] of ring.entries()) {
    const text = Buffer.from(key).toString('base64');
    // A key that the list has twice was reported with the list.
    if (!noted.has(text)) uses.note(`${memberPath(SEALING_KEYS, index)}.key`, text);
    noted.add(text);
  }
  const [first, ...others] = ring;
  if (first !== undefined) return [first, ...others];
  // Refused keys have their problems already.
  if (!problems.sound(SEALING_KEYS)) return undefined;
  const example = `[{ id: k1, key: "\${file:/run/secrets/sealing-key}" }]`;
  problems.add(SEALING_KEYS, `is missing: such as ${example}; ${MAKE_A_KEY}`);
  return undefined;
}

/**
 * An embedded database belongs to one process, so several replicas need Redis in every mode. Its
 * path is relative to the folder of the configuration file.
 */
export function deriveStorage(
  { storage }: ConfigDocument,
  [first, ...others]: readonly SealingKey[],
  folder: string | undefined,
  problems: ProblemList,
): StorageConfig | undefined {
  if (!problems.readable('storage')) return undefined;
  const { redis, sqlite, replicas, eventsMaxLength, receiptsMaxLength, receiptsMaxAgeDays } = storage;
  if (sqlite !== undefined && problems.sound('storage.replicas') && replicas > 1)
    problems.add('storage.replicas', 'must be 1 with sqlite; several replicas need storage.redis');
  const engine: StorageConfig['engine'] | undefined =
    redis === undefined
      ? sqlite && { kind: 'sqlite', path: pathIn(folder, sqlite.path) }
      : redisEngine(redis, problems);
  if (!problems.sound('storage')) return undefined;
  return (
    engine && {
      engine,
      eventsMaxLength,
      receiptsMaxLength,
      ...(receiptsMaxAgeDays === undefined ? {} : { receiptsMaxAgeMs: receiptsMaxAgeDays * DAY_MS }),
      ...(first === undefined ? {} : { sealing: [first, ...others] as const }),
      replicas,
    }
  );
}

function pathIn(folder: string | undefined, path: string): string {
  return folder === undefined || path === ':memory:' ? path : resolve(folder, path);
}

/** `storage.redis`: address, login, certificates. Undefined after a problem with the address. */
function redisEngine(document: RedisDocument, problems: ProblemList): StorageConfig['engine'] | undefined {
  if (!problems.readable(PATH)) return undefined;
  const { url: _url, sentinel: _sentinel, cluster: _cluster, ...login } = document;
  checkLogin(`${PATH}.password`, document, problems);
  if (document.sentinel !== undefined && problems.readable(`${PATH}.sentinel`))
    checkLogin(`${PATH}.sentinel.password`, document.sentinel, problems);
  checkTls(document, problems);
  const address = addressOf(document, problems);
  return address && { kind: 'redis', ...address, ...login };
}

function addressOf(document: RedisDocument, problems: ProblemList): RedisAddress | undefined {
  const { url, sentinel, cluster } = document;
  if (!problems.sound(`${PATH}.url`, `${PATH}.sentinel`, `${PATH}.cluster`)) return undefined;
  if (url !== undefined) return urlAddress(url, document, problems);
  if (sentinel !== undefined)
    return { sentinel: { ...sentinel, nodes: nodesOf(sentinel.nodes, `${PATH}.sentinel.nodes`, problems) } };
  return cluster && { cluster: { nodes: nodesOf(cluster.nodes, `${PATH}.cluster.nodes`, problems) } };
}

function urlAddress(text: string, document: RedisDocument, problems: ProblemList): RedisAddress | undefined {
  const reading = readRedisUrl(text);
  if (!reading.ok) {
    problems.add(`${PATH}.url`, reading.message);
    return undefined;
  }
  const { url } = reading;
  const named = url.username !== undefined || url.password !== undefined;
  if (named && (document.username !== undefined || document.password !== undefined))
    problems.add(`${PATH}.password`, `is in ${PATH}.url too, or the user is; keep both in one place`);
  if (url.username !== undefined && url.password === undefined)
    problems.add(`${PATH}.url`, 'must not name a user without a password');
  if ('path' in url.at && document.tls !== undefined)
    problems.add(`${PATH}.tls`, 'is not used over a unix socket; remove it');
  return { url: text };
}

function nodesOf(nodes: readonly string[], path: string, problems: ProblemList): readonly RedisNode[] {
  return nodes.map((node, i) => {
    const at = node.lastIndexOf(':');
    const port = Number(node.slice(at + 1));
    if (port < 1 || port > LONGEST_PORT) problems.add(memberPath(path, i), 'must have a port from 1 to 65535');
    return { host: node.slice(0, at).replace(/^\[|\]$/g, ''), port };
  });
}

/** The client would silently ignore a user without a password. */
function checkLogin(
  path: string,
  { username, password }: { readonly username?: string; readonly password?: string },
  problems: ProblemList,
): void {
  if (username !== undefined && password === undefined) problems.add(path, 'is missing: a user needs a password');
}

function checkTls({ tls }: RedisDocument, problems: ProblemList): void {
  if (tls?.ca === undefined || !problems.sound(`${PATH}.tls`)) return;
  const certificates = pemCertificates(tls.ca);
  if (certificates.length > 0 && certificates.every(readable)) return;
  problems.add(`${PATH}.tls.ca`, `must be certificates as PEM text; to read a file write \${file:/path/of/ca.pem}`);
}

function readable(certificate: string): boolean {
  try {
    return new X509Certificate(certificate).raw.length > 0;
  } catch {
    return false;
  }
}
