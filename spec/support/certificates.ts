/** Certificate authorities and certificates for specs of TLS. */

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** Certificate and key as PEM. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** An authority of a spec, and the certificates that it signs. */
export interface Authority {
  readonly certificate: string;
  /** A server at this host; else at 127.0.0.1 and localhost. */
  issue(host?: string): Identity;
}

const TAG = { integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31, time: 0x17 };
const ECDSA_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const COMMON_NAME = oid(0x55, 0x04, 0x03);
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13);
const SUBJECT_ALT_NAME = oid(0x55, 0x1d, 0x11);
const TRUE = der(0x01, Buffer.from([0xff]));
const DAY_MS = 86_400_000;

/**
 * Makes an authority of its own for one test. Node can sign, but not write certificates: that is
 * what the rest of this file does.
 */
export function createAuthority(name: string): Authority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = [authorityExtension()];
  const certificate = makeCertificate({ issuer: name, subject: name, publicKey, extensions }, privateKey);
  return {
    certificate,
    issue(host) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const server = {
        issuer: name,
        subject: 'localhost',
        publicKey: own.publicKey,
        extensions: [
          host === undefined ? namesExtension('localhost', Buffer.from([127, 0, 0, 1])) : namesExtension(host),
        ],
      };
      return {
        certificate: makeCertificate(server, privateKey),
        key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

/** The content of a certificate. Times: milliseconds since 1970; default: a day around now. */
export interface Statement {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly from?: number;
  readonly until?: number;
}

/**
 * States that the subject may sign certificates; `pathLength` authorities may stand between it and
 * a leaf.
 */
export function authorityExtension(pathLength?: number): Buffer {
  const bound = pathLength === undefined ? [] : [integer(pathLength)];
  return extension(BASIC_CONSTRAINTS, TRUE, sequence(TRUE, ...bound));
}

/** The names of the subject: host names, and addresses as bytes. */
export function namesExtension(...names: readonly (string | Buffer)[]): Buffer {
  const encoded = names.map((name) => (typeof name === 'string' ? der(0x82, Buffer.from(name)) : der(0x87, name)));
  return extension(SUBJECT_ALT_NAME, sequence(...encoded));
}

/** An X.509 v3 certificate (RFC 5280) as PEM, signed with a P-256 key. */
export function makeCertificate(
  { issuer, subject, publicKey, extensions, from = Date.now() - DAY_MS, until = Date.now() + DAY_MS }: Statement,
  key: KeyObject,
): string {
  const statement = sequence(
    der(0xa0, integer(2)),
    integer(1 + Math.floor(Math.random() * 0x7ffffffe)),
    ECDSA_SHA256,
    called(issuer),
    sequence(time(from), time(until)),
    called(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const certificate = sequence(statement, ECDSA_SHA256, bits(sign('sha256', statement, key)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(TAG.sequence, ...parts);
}

function oid(...bytes: readonly number[]): Buffer {
  return der(TAG.oid, Buffer.from(bytes));
}

function integer(value: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(value, 1);
  // A first bit of 1 would make it negative; more zeros than that one are not allowed.
  const from = bytes.findIndex((byte, i) => byte !== 0 || i === bytes.length - 1);
  const start = (bytes[from] ?? 0) >= 0x80 ? from - 1 : from;
  return der(TAG.integer, bytes.subarray(start));
}

function bits(content: Buffer): Buffer {
  return der(TAG.bits, Buffer.from([0]), content);
}

function time(ms: number): Buffer {
  return der(TAG.time, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replaceAll(/[-T:]/g, '')}Z`));
}

function called(name: string): Buffer {
  return sequence(der(TAG.set, sequence(COMMON_NAME, der(TAG.utf8, Buffer.from(name)))));
}

function extension(id: Buffer, ...parts: readonly Buffer[]): Buffer {
  const [last = Buffer.alloc(0), ...before] = [...parts].reverse();
  return sequence(id, ...before.reverse(), der(TAG.octets, last));
}
