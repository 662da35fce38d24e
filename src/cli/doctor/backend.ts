/** The checks of the merchant's service: it can be reached, and only through the gateway. */

import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { GatewayConfig } from '../../config/document/config.ts';
import { isLoopbackUrl } from '../../config/document/endpoints.ts';
import { findExposure } from '../../sidecar/exposure.ts';
import { httpGet, unanswered } from '../http-get.ts';
import { type Check, type Finding, failed, passed, skipped, warned } from './check.ts';

/** Longest wait for a connection or an answer, milliseconds. */
const WAIT_MS = 3_000;
/** First status of a service that answers and does not work. */
const SERVER_ERROR = 500;
const START = 'start it, or correct backend.baseUrl';

/** At most the path of `backend.probe` is requested. */
export function checkBackend({ origin, probePath, headers }: GatewayConfig['backend']): readonly Check[] {
  return [
    {
      name: 'backend',
      run: () => (probePath === undefined ? connected(origin) : probed(`${origin}${probePath}`, headers)),
    },
    { name: 'backend exposure', needs: ['backend'], run: () => exposureOf(origin) },
  ];
}

async function probed(url: string, headers: Readonly<Record<string, string>>): Promise<Finding> {
  const { pathname } = new URL(url);
  try {
    const { statusCode, body } = await httpGet(url, { headers, silentMs: WAIT_MS });
    body.destroy();
    return statusCode < SERVER_ERROR
      ? passed(`answers ${pathname} with ${statusCode}`)
      : warned(
          `answers its probe ${pathname} with ${statusCode}`,
          'look at the service, or correct backend.probe.path',
        );
  } catch (thrown) {
    return failed(thrown instanceof Error ? thrown.message : String(thrown), START);
  }
}

/** Only connects: without a probe no path is known to be free of charge and of consequences. */
async function connected(origin: string): Promise<Finding> {
  try {
    await connection(origin);
    return passed(`${origin} takes connections; backend.probe.path shows whether it answers`);
  } catch (thrown) {
    return failed(unanswered(origin, thrown).message, START);
  }
}

function connection(origin: string): Promise<void> {
  const { protocol, hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  const at = { host, port: Number(port || (isTls ? 443 : 80)) };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = isTls
    ? connectTls({ ...at, ...(isIP(host) === 0 ? { servername: host } : {}) }, resolve)
    : connectTcp(at, resolve);
  socket.setTimeout(WAIT_MS, () => socket.destroy(new Error(`no connection within ${WAIT_MS / 1_000} s`)));
  socket.on('error', reject);
  return promise.finally(() => socket.destroy());
}

async function exposureOf(origin: string): Promise<Finding> {
  if (!isLoopbackUrl(origin)) return skipped(`${origin} is elsewhere: who reaches it there pays nothing`);
  const { port, protocol } = new URL(origin);
  const found = await findExposure(Number(port || (protocol === 'https:' ? 443 : 80)));
  return found === undefined
    ? passed('it listens on loopback only')
    : warned(
        `it can be called past the gateway, without paying, at ${found.address} port ${found.port}`,
        'let it listen on 127.0.0.1 only',
      );
}
