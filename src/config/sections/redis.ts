import { X509Certificate } from 'node:crypto';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { RedisAddress, RedisNode, RedisSettings } from '../../store/port/settings.ts';
import { readRedisUrl } from '../../store/redis/url.ts';
import type { RedisDocument } from '../document/document.ts';

const PATH = 'storage.redis';
const LONGEST_PORT = 65_535;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** `storage.redis`: where it is, how to log in, and whom to trust. Undefined when the address is none; problems tell why. */
export function deriveRedis(document: RedisDocument, problems: ProblemList): RedisSettings | undefined {
  const { username, password, tls, replicas } = document;
  checkLogin(`${PATH}.password`, document, problems);
  if (document.sentinel !== undefined) checkLogin(`${PATH}.sentinel.password`, document.sentinel, problems);
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

/** The client would leave a user without a password out silently. */
function checkLogin(
  path: string,
  { username, password }: { readonly username?: string; readonly password?: string },
  problems: ProblemList,
): void {
  if (username !== undefined && password === undefined) problems.add(path, 'is missing: a user needs a password');
}

function checkTls({ tls }: RedisDocument, problems: ProblemList): void {
  if (tls?.ca === undefined) return;
  const certificates = tls.ca.match(PEM_CERTIFICATE) ?? [];
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
