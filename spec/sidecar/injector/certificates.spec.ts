import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { describe, it } from 'node:test';
import { certificatesIn, makeCertificates } from '../../../src/sidecar/injector/certificates.ts';

const NAME = { service: 'agent-commerce-injector', namespace: 'agent-commerce-system' };
const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-23T00:00:00Z');
/** The extended key usage of TLS servers. */
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

describe('the certificates of an injector', () => {
  const made = makeCertificates(NAME, 90, undefined, NOW);

  it('are a leaf that its authority signed, for every name of the Service', () => {
    assert.ok(made.leaf.checkIssued(made.authority) && made.leaf.verify(made.authority.publicKey));
    assert.ok(made.leaf.checkPrivateKey(createPrivateKey(made.key)));
    for (const host of [
      'agent-commerce-injector.agent-commerce-system.svc',
      'agent-commerce-injector.agent-commerce-system.svc.cluster.local',
    ])
      assert.equal(made.leaf.checkHost(host, { subject: 'never' }), host);
    assert.equal(made.leaf.checkHost('agent-commerce-injector.other.svc', { subject: 'never' }), undefined);
  });

  it('last five years and the days that were asked for, from a little before now', () => {
    assert.equal(Date.parse(made.leaf.validTo), NOW + 90 * DAY_MS);
    assert.equal(Date.parse(made.authority.validTo), NOW + 5 * 365 * DAY_MS);
    for (const { validFrom } of [made.leaf, made.authority]) assert.equal(Date.parse(validFrom), NOW - 5 * 60_000);
  });

  it('may be used for nothing else', () => {
    assert.deepEqual([made.authority.ca, made.leaf.ca], [true, false]);
    assert.deepEqual(made.leaf.keyUsage, [SERVER_AUTH]);
  });

  it('name a subject of at most 64 characters, which is all that X.509 allows', () => {
    const longest = { service: 's'.repeat(63), namespace: 'n'.repeat(63) };
    const { leaf, authority } = makeCertificates(longest, 1, undefined, NOW);
    for (const { subject } of [leaf, authority]) assert.ok((subject ?? '').length - 'CN='.length <= 64, subject);
  });
});

describe('renewed certificates', () => {
  const first = makeCertificates(NAME, 90, undefined, NOW);
  const second = makeCertificates(NAME, 90, first, NOW + DAY_MS);

  it('are trusted together with those before, whose authority has another name', () => {
    const trusted = certificatesIn(second.authorities);
    assert.deepEqual(
      trusted.map(({ subject }) => subject),
      [second.authority.subject, first.authority.subject],
    );
    assert.notEqual(second.authority.subject, first.authority.subject);
    for (const { leaf } of [first, second])
      assert.equal(trusted.filter((authority) => leaf.verify(authority.publicKey)).length, 1);
  });

  it('keep no authority that the certificate in use does not need', () => {
    const third = makeCertificates(NAME, 90, second, NOW + 2 * DAY_MS);
    assert.deepEqual(
      certificatesIn(third.authorities).map(({ subject }) => subject),
      [third.authority.subject, second.authority.subject],
    );
    const years = makeCertificates(NAME, 90, second, NOW + 6 * 365 * DAY_MS);
    assert.equal(certificatesIn(years.authorities).length, 1);
  });

  it('differ within one millisecond', () => {
    const again = makeCertificates(NAME, 90, first, NOW);
    assert.notEqual(again.authority.subject, first.authority.subject);
    assert.notEqual(again.leaf.serialNumber, first.leaf.serialNumber);
  });

  it('come also where the files before them cannot be used', () => {
    const torn = { authorities: first.authorities, certificate: 'torn' };
    assert.equal(certificatesIn(makeCertificates(NAME, 90, torn, NOW).authorities).length, 1);
  });
});
