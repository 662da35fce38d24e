/** The check of the certificate that agents see at the public address. */

import { isIP } from 'node:net';
import { connect, type PeerCertificate } from 'node:tls';
import { isLoopbackUrl } from '../../config/document/endpoints.ts';
import { unanswered } from '../http-get.ts';
import { type Check, type Finding, failed, passed, skipped, warned } from './check.ts';

const WAIT_MS = 3_000;
const DAY_MS = 86_400_000;
/** Renewals are made a month before the end; with less than half of that left one has failed. */
const SOON_DAYS = 14;
const RENEW = 'renew it where TLS ends, before the gateway';

/** `ca`: PEM of authorities that are trusted instead of the well-known ones. */
export function checkCertificate(publicBaseUrl: string, ca?: string): Check {
  return {
    name: 'certificate',
    async run() {
      if (isLoopbackUrl(publicBaseUrl)) return skipped('merchant.publicBaseUrl is this machine');
      if (!publicBaseUrl.startsWith('https:')) return skipped('merchant.publicBaseUrl is not https');
      return judged(publicBaseUrl, ca);
    },
  };
}

async function judged(publicBaseUrl: string, ca: string | undefined): Promise<Finding> {
  const { host } = new URL(publicBaseUrl);
  let seen: SeenCertificate;
  try {
    seen = await certificateAt(publicBaseUrl, ca);
  } catch (thrown) {
    return failed(unanswered(publicBaseUrl, thrown).message, 'look at DNS and at what ends TLS before the gateway');
  }
  const { fault, until } = seen;
  const days = Math.floor((until - Date.now()) / DAY_MS);
  const end = new Date(until).toISOString();
  if (fault !== undefined) return failed(`agents refuse that of ${host}: ${fault} (until ${end})`, RENEW);
  return days < SOON_DAYS
    ? warned(`that of ${host} ends in ${days} days, ${end}`, RENEW)
    : passed(`that of ${host} is valid for ${days} days`);
}

interface SeenCertificate {
  /** Why a client refuses it. */
  readonly fault: string | undefined;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** @throws Error when none was shown */
function certificateAt(url: string, ca: string | undefined): Promise<SeenCertificate> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const { promise, resolve, reject } = Promise.withResolvers<SeenCertificate>();
  const socket = connect(
    {
      ...{ host, port: Number(port || 443) },
      // An address is no name that a server could choose a certificate by.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // `authorizationError` is read instead, and nothing is sent.
      rejectUnauthorized: false,
      ...(ca === undefined ? {} : { ca }),
    },
    () => resolve({ fault: faultOf(socket.authorizationError), until: endOf(socket.getPeerCertificate()) }),
  );
  socket.setTimeout(WAIT_MS, () => socket.destroy(new Error(`no certificate within ${WAIT_MS / 1_000} s`)));
  socket.on('error', reject);
  return promise.finally(() => socket.destroy());
}

function faultOf(error: Error | string | null | undefined): string | undefined {
  if (error === null || error === undefined) return undefined;
  return error instanceof Error ? error.message : error;
}

function endOf({ valid_to: until }: PeerCertificate): number {
  return Date.parse(until);
}
