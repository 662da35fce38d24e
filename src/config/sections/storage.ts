/** `storage`: Redis or SQLite, its bounds and its sealing keys. */

import { X509Certificate } from 'node:crypto';
import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { SealingKey } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { RedisAddress, RedisNode, RedisSettings, StorageConfig } from '../../store/port/settings.ts';
import { readRedisUrl } from '../../store/redis/url.ts';
import type { ConfigDocument, RedisDocument } from '../document/document.ts';
import { pemCertificates } from '../document/read.ts';
import { sealingKeys } from './sealing.ts';

const STORAGE = schema.properties.storage.properties;
const DAY_MS = 24 * 60 * 60 * 1_000;
const PATH = 'storage.redis';
const LONGEST_PORT = 65_535;

/** Which of the two engines is configured, whatever is wrong with its settings. */
export type Engine = 'redis' | 'sqlite';

/** Undefined when that cannot be told. */
export function engineOf({ storage }: ConfigDocument, problems: ProblemList): Engine | undefined {
  if (!problems.readable('storage')) return undefined;
  return storage.redis === undefined ? 'sqlite' : 'redis';
}

/** The keys that can be used; also where another part of the section was refused. */
export function storageKeys({ storage }: ConfigDocument, problems: ProblemList): readonly SealingKey[] {
  return problems.readable('storage') && problems.readable('storage.sealing')
    ? sealingKeys(storage.sealing?.keys, problems)
    : [];
}

/** An embedded database belongs to one process, so several replicas need Redis in every mode. */
export function deriveStorage(
  document: ConfigDocument,
  [first, ...others]: readonly SealingKey[],
  problems: ProblemList,
): StorageConfig | undefined {
  if (!problems.readable('storage')) return undefined;
  const { redis, sqlite, replicas = STORAGE.replicas.default, eventsMaxLength, ...rest } = document.storage;
  const { receiptsMaxLength, receiptsMaxAgeDays } = rest;
  if (sqlite !== undefined && problems.sound('storage.replicas') && replicas > 1)
    problems.add('storage.replicas', 'must be 1 with sqlite; several replicas need storage.redis');
  const engine =
    redis === undefined ? sqlite && { kind: 'sqlite' as const, path: sqlite.path } : server(redis, problems);
  if (!problems.sound('storage')) return undefined;
  return (
    engine && {
      engine,
      eventsMaxLength: eventsMaxLength ?? STORAGE.eventsMaxLength.default,
      receiptsMaxLength: receiptsMaxLength ?? STORAGE.receiptsMaxLength.default,
      ...(receiptsMaxAgeDays === undefined ? {} : { receiptsMaxAgeMs: receiptsMaxAgeDays * DAY_MS }),
      ...(first === undefined ? {} : { sealing: [first, ...others] as const }),
      replicas,
    }
  );
}

function server(redis: RedisDocument, problems: ProblemList): StorageConfig['engine'] | undefined {
  const settings = deriveRedis(redis, problems);
  return settings && { kind: 'redis', ...settings };
}

/** `storage.redis`: address, login, certificates. Undefined after a problem with the address. */
function deriveRedis(document: RedisDocument, problems: ProblemList): RedisSettings | undefined {
  if (!problems.readable(PATH)) return undefined;
  const { username, password, tls, replicas } = document;
  checkLogin(`${PATH}.password`, document, problems);
  if (document.sentinel !== undefined && problems.readable(`${PATH}.sentinel`))
    checkLogin(`${PATH}.sentinel.password`, document.sentinel, problems);
  checkTls(document, problems);
  const address = addressOf(document, problems);
  return (
    address && {
      ...address,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(tls === undefined ? {} : { tls }),
      ...(replicas === undefined ? {} : { replicas }),
    }
  );
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
