/** Makes the certificates of an injector: an authority of its own, and a leaf for its Service. */

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

const DAY_MS = 86_400_000;
/** The authority outlives every leaf that it could sign. */
const AUTHORITY_DAYS = 5 * 365;
/** Clocks of API servers may be behind this one by so much, milliseconds. */
const SKEW_MS = 5 * 60_000;
const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
/** RFC 5280 allows 20 bytes; the first bit is 0, because a serial number is positive. */
const SERIAL_BYTES = 16;
const KEY_IDENTIFIER_BYTES = 20;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Where the injector is called: `<service>.<namespace>.svc`. */
interface ServiceName {
  readonly service: string;
  readonly namespace: string;
}

/** What is in the directory already. */
interface Existing {
  readonly authorities: string;
  readonly certificate: string;
}

/**
 * Makes an authority and a leaf. The key of the authority is forgotten, so nothing else is ever
 * signed by it and there is no second secret to keep. Each generation has a common name of its own:
 * clients that meet two authorities of one name may pick the wrong one and fail.
 *
 * `existing`: the authority that signed the certificate in use stays in `authorities`, so that API
 * servers trust the old leaf and the new one in whichever order they arrive. Older authorities go.
 */
export function makeCertificates(name: ServiceName, days: number, existing: Existing | undefined, now: number) {
  const issuer = `agent-commerce-injector-ca ${new Date(now).toISOString()} ${randomBytes(4).toString('hex')}`;
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = namesOf(name);
  const keyIdentifier = keyIdentifierOf(authority.publicKey);
  const authorityCertificate = signed(authority.privateKey, {
    issuer,
    subject: issuer,
    publicKey: authority.publicKey,
    validity: validity(now, AUTHORITY_DAYS),
    extensions: [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 })),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign)),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier)),
    ],
  });
  const leaf = signed(authority.privateKey, {
    issuer,
    subject: name.service,
    publicKey: own.publicKey,
    validity: validity(now, days),
    extensions: [
      extension(id_ce_basicConstraints, new BasicConstraints({})),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature)),
      extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyIdentifier) }),
      ),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      extension(id_ce_subjectAltName, new SubjectAlternativeName(names.map((dNSName) => new GeneralName({ dNSName })))),
    ],
  });
  const before = existing === undefined ? [] : authoritiesInUse(existing, now);
  // As PEM: `ca.crt`, what API servers trust; `tls.crt`; `tls.key`.
  return {
    authorities: [authorityCertificate, ...before].map(String).join(''),
    certificate: leaf.toString(),
    key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    authority: authorityCertificate,
    leaf,
  };
}

/** The certificates of a PEM file. @throws Error when one of them cannot be read */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  return (pem.match(PEM) ?? []).map((one) => new X509Certificate(one));
}

/** The name that API servers ask for comes first. */
function namesOf({ service, namespace }: ServiceName): readonly string[] {
  return [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`, `${service}.${namespace}`];
}

/** The authorities that the certificate in use needs. */
function authoritiesInUse({ authorities, certificate }: Existing, now: number): readonly X509Certificate[] {
  const [leaf] = certificatesIn(certificate);
  if (leaf === undefined) return [];
  return certificatesIn(authorities).filter(
    (authority) =>
      Date.parse(authority.validTo) > now && leaf.checkIssued(authority) && leaf.verify(authority.publicKey),
  );
}

interface Statement {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: Extension[];
}

/** A certificate in the encoding of RFC 5280, signed with a P-256 key. */
function signed(key: KeyObject, { issuer, subject, publicKey, validity, extensions }: Statement): X509Certificate {
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const statement = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature: algorithm,
    issuer: called(issuer),
    subject: called(subject),
    validity,
    subjectPublicKeyInfo: AsnConvert.parse(publicKey.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo),
    extensions: new Extensions(extensions),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(statement)), key);
  const certificate = new Certificate({
    tbsCertificate: statement,
    signatureAlgorithm: algorithm,
    signatureValue: new Uint8Array(signature).buffer,
  });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate)));
}

/** What tells the keys of two authorities apart; any digest of a key will do. */
function keyIdentifierOf(key: KeyObject): ArrayBuffer {
  const digest = createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest();
  return new Uint8Array(digest.subarray(0, KEY_IDENTIFIER_BYTES)).buffer;
}

function serialNumber(): ArrayBuffer {
  const bytes = new Uint8Array(randomBytes(SERIAL_BYTES));
  // Neither negative nor with a leading zero, which the encoding does not allow.
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.buffer;
}

function validity(now: number, days: number): Validity {
  return new Validity({ notBefore: new Date(now - SKEW_MS), notAfter: new Date(now + days * DAY_MS) });
}

function called(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

/** Critical, so that a client understands it or refuses, is what a key may be used for. */
function extension(extnID: string, content: unknown): Extension {
  const extnValue = new OctetString(AsnConvert.serialize(content));
  return new Extension({ extnID, critical: extnID === id_ce_basicConstraints || extnID === id_ce_keyUsage, extnValue });
}
