import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkCertificate } from '../../../src/cli/doctor/certificate.ts';
import { type Finding, runChecks } from '../../../src/cli/doctor/check.ts';
import { podAddresses } from '../../../src/sidecar/exposure.ts';
import { authorityExtension, makeCertificate, namesExtension } from '../../support/certificates.ts';
import { acg } from '../acg.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

const DAY_MS = 86_400_000;
const [own = ''] = podAddresses().filter((address) => !address.includes(':'));
const skip = own === '' ? `${hostname()} has no address but loopback` : false;
const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const authority = makeCertificate(
  { issuer: 'doctor', subject: 'doctor', publicKey: issuer.publicKey, extensions: [authorityExtension()] },
  issuer.privateKey,
);
const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

/** A server at this machine's own address; its URL. */
async function serving(validDays: number, name: string | Buffer = addressBytes(own)): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const until = Date.now() + validDays * DAY_MS;
  const statement = { issuer: 'doctor', subject: 'shop', publicKey, extensions: [namesExtension(name)] };
  const cert = makeCertificate({ ...statement, from: Date.now() - 30 * DAY_MS, until }, issuer.privateKey);
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const server: Server = createServer({ cert, key }, (_request, response) => response.end());
  ends.defer(() => void server.close());
  server.listen(0, own);
  await once(server, 'listening');
  return `https://${own}:${(server.address() as AddressInfo).port}`;
}

function addressBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

async function found(url: string, ca?: string): Promise<Finding> {
  const [finding] = await runChecks([checkCertificate(url, ca)], () => undefined);
  assert.ok(finding !== undefined);
  return finding;
}

describe('the check of the certificate', { skip }, () => {
  it('is for https beyond this machine', async () => {
    assert.equal((await found('https://127.0.0.1:1')).status, 'SKIP');
    assert.equal((await found('http://shop.example')).status, 'SKIP');
  });

  it('says how long it is valid, and warns two weeks before the end', async () => {
    const long = await found(await serving(60.5), authority);
    assert.deepEqual([long.status, /is valid for 60 days$/.test(long.message)], ['PASS', true]);
    const short = await found(await serving(10.5), authority);
    assert.deepEqual([short.status, / ends in 10 days, /.test(short.message)], ['WARN', true]);
  });

  it('fails on one that has ended, is of an unknown authority, or of another name', async () => {
    for (const [url, ca, says] of [
      [await serving(-1), authority, /certificate has expired|CERT_HAS_EXPIRED/],
      [await serving(60), undefined, /unable to verify|UNABLE_TO_VERIFY/],
      [await serving(60, 'other.example'), authority, /does not match|ERR_TLS_CERT_ALTNAME_INVALID/],
    ] as const) {
      const { status, message, remedy } = await found(url, ca);
      assert.deepEqual([status, remedy], ['FAIL', 'renew it where TLS ends, before the gateway']);
      assert.match(message, says);
    }
  });

  it('fails where no certificate is shown', async () => {
    const { status, message } = await found(`https://${own}:1`);
    assert.deepEqual([status, message], ['FAIL', `https://${own}:1 does not answer: nothing listens there`]);
  });

  describe('in acg doctor', () => {
    let world: CheckedWorld;
    before(async () => {
      world = await openCheckedWorld(ends);
      await writeFile(join(world.folder, 'ca.pem'), authority);
    });

    it('flips alone', async () => {
      const statusesWith = async (publicBaseUrl: string) => {
        const path = await world.configured({ merchant: { publicBaseUrl } });
        const env = { NODE_EXTRA_CA_CERTS: join(world.folder, 'ca.pem') };
        const { lines } = await acg(world.folder, ['doctor', '--config', path], env);
        const { findings } = JSON.parse(lines.join('\n'));
        return Object.fromEntries(findings.map(({ check, status }: Finding & { check: string }) => [check, status]));
      };
      const [valid, expired] = await Promise.all([statusesWith(await serving(60)), statusesWith(await serving(-1))]);
      assert.equal(valid['certificate'], 'PASS');
      assert.deepEqual(expired, { ...valid, certificate: 'FAIL' });
      assert.deepEqual(
        Object.values(valid).filter((status) => status === 'FAIL' || status === 'WARN'),
        [],
      );
    });
  });
});
