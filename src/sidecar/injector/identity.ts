/** Checks the certificate and the key that an injector is to serve, and who may call it. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls';

/** A certificate that can be served, with its key. */
export interface Identity {
  /** PEM; the leaf first, then whatever leads to its authority. */
  readonly certificate: string;
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/**
 * Reads `tls.crt` and `tls.key`.
 * @throws Error that says in words what an API server would refuse; it quotes nothing of the key
 */
export function readIdentity(certificate: string, key: string, now: number): Identity {
  const leaf = leafOf(certificate);
  let isPair: boolean;
  try {
    isPair = leaf.checkPrivateKey(createPrivateKey(key));
  } catch {
    throw new Error('tls.key holds no private key in PEM without a passphrase');
  }
  if (!isPair) throw new Error('tls.key is not the key of tls.crt');
  const expiresAt = Date.parse(leaf.validTo);
  if (expiresAt <= now) throw new Error(`tls.crt has expired at ${new Date(expiresAt).toISOString()}`);
  if (leaf.subjectAltName === undefined)
    throw new Error('tls.crt has no subject alternative name: API servers do not read the common name');
  assertServable({ cert: certificate, key }, 'tls.crt and tls.key');
  return { certificate, key, expiresAt };
}

/** What follows the first certificate, and the strength of keys, only TLS itself judges. */
function assertServable(context: SecureContextOptions, what: string): void {
  try {
    createSecureContext(context);
  } catch (error) {
    throw new Error(`${what} cannot be used for TLS: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function leafOf(certificate: string): X509Certificate {
  try {
    return new X509Certificate(certificate);
  } catch {
    throw new Error('tls.crt holds no certificate in PEM');
  }
}

/** Reads the file of authorities whose clients may call. @throws Error */
export function readClientAuthority(pem: string): string {
  // TLS takes a file without any certificate, and then trusts no client.
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw new Error('the file of the client authority holds no certificate in PEM');
  assertServable({ ca: pem }, 'the client authority');
  return pem;
}

/**
 * Why a client may not call, in words; undefined: it may. `name`: the common name that its
 * certificate must have, where one is demanded.
 */
export function clientProblem(socket: TLSSocket, name: string | undefined): string | undefined {
  const { raw, subject } = socket.getPeerCertificate();
  // Asked first: a resumed session without a certificate counts as authorized.
  if (raw === undefined) return 'A client certificate is required, and none was shown.';
  if (!socket.authorized) return `The client certificate is not trusted here: ${String(socket.authorizationError)}.`;
  if (name !== undefined && subject.CN !== name) return 'The client certificate is of another client.';
  return undefined;
}
