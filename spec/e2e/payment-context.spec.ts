import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { signingKey } from '../../src/crypto/signing-key.ts';
import { createPaymentContext } from '../../src/payments/delivery/purchase-signer.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { pem } from '../config/sections/ap2.ts';
import { blocksOf } from '../documents/blocks.ts';
import { callInPlace } from '../support/in-place.ts';
import { receiptWhen } from '../support/records.ts';
import { settledAfter } from '../support/settled-after.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { WITH_IN_PLACE } from './mandate-channels.ts';

const NAME = 'agent-commerce-payment';
const INPUT = { city: 'Berlin' };
const FORGED = { [NAME]: 'forged', Agent_Commerce_Payment: 'forged' };
type Claims = Readonly<Record<string, unknown>>;

describe('what the backend learns of a payment', () => {
  const ends = new AsyncDisposableStack();
  const text = pem();
  const key = signingKey(text);
  let testbed: Testbed;
  /** The lines of the document, for this gateway and this service. */
  let paymentOf: (header: string | undefined) => Promise<Claims>;
  before(async () => {
    testbed = await openTestbed({
      overrides: {
        ...settledAfter('market_report', 'flaky'),
        signing: { key: text },
        backend: { paymentContext: true, passthrough: { enabled: true } },
      },
    });
    ends.defer(() => testbed.close());
    const block = blocksOf('docs/operators.md').find(({ detail }) => detail === 'spec/e2e/payment-context.spec.ts');
    const program = (block?.text ?? assert.fail())
      .replace("'jose'", `'${import.meta.resolve('jose')}'`)
      .replace('http://127.0.0.1:8402', testbed.gateway.url)
      .replace('https://api.market-shop.example', testbed.gateway.config.merchant.publicBaseUrl)
      .replace('http://127.0.0.1:3000', testbed.backend.url);
    const file = join(await temporaryDirectory(ends, 'acg-context-'), 'payment-of.mjs');
    await writeFile(file, program);
    ({ paymentOf } = await import(pathToFileURL(file).href));
  });
  after(() => ends.disposeAsync());

  const seen = (): readonly (string | undefined)[] =>
    testbed.backend.requests.map(({ headers }) => headers[NAME] as string | undefined);

  for (const [channel, send] of Object.entries(WITH_IN_PLACE))
    for (const [state, resourceId] of [
      ['settled', 'market_report'],
      ['reserved', 'echo'],
    ] as const)
      it(`is that of the receipt, over ${channel}, and ${state} when it is called`, async () => {
        const proof = await testbed.proof(resourceId, INPUT);
        testbed.backend.forget();
        const requestId = `context-${channel}-${state}`;
        const headers = { ...FORGED, 'x-request-id': requestId };
        const { code } = await send(testbed.gateway, { resourceId, input: INPUT, proof, headers });
        assert.equal(code, undefined);
        const [header, ...others] = seen();
        assert.deepEqual(others, []);
        const { iat, exp, ...claims } = await paymentOf(header);
        const longestMs = Math.max(...testbed.gateway.config.resources.map(({ backend: { timeoutMs } }) => timeoutMs));
        assert.equal(Number(exp) - Number(iat), 60 + longestMs / 1_000);
        const { id: receiptId, payment } = await receiptWhen(testbed.gateway, requestId, true);
        const { payer, amount, currency, network } = payment ?? assert.fail('a receipt without a payment');
        assert.deepEqual(claims, {
          ...{ iss: testbed.gateway.config.merchant.publicBaseUrl, aud: testbed.backend.url },
          ...{ receiptId, requestId, resourceId, payer, amount, currency, network, state },
        });
      });

  it('is signed anew, of the same receipt, each time that the answer is fetched', async () => {
    const input = { failures: 1 };
    const headers = { 'payment-signature': await testbed.proof('flaky', input) };
    testbed.backend.forget();
    await testbed.gateway.invoke('flaky', input, headers);
    assert.equal((await testbed.gateway.invoke('flaky', input, headers)).status, 200);
    const all = await Promise.all(seen().map(paymentOf));
    assert.equal(new Set(all.map(({ receiptId }) => receiptId)).size, 1);
    assert.deepEqual([all.length >= 2, all.every(({ state }) => state === 'settled')], [true, true]);
  });

  it('is nothing without a payment: neither of a free call nor of one that passes, whatever their callers say', async () => {
    const { gateway, backend } = testbed;
    backend.forget();
    await gateway.invoke('free_echo', INPUT, FORGED);
    await fetch(`${gateway.url}/unsold`, { headers: FORGED });
    gateway.reload({ backend: { passthrough: { enabled: true } } });
    const proof = await testbed.proof('market_report', INPUT);
    await callInPlace(gateway, 'market_report', INPUT, { ...FORGED, 'payment-signature': proof });
    await fetch(`${gateway.url}/unsold`, { headers: FORGED });
    gateway.reload({});
    assert.deepEqual(seen(), [undefined, undefined, undefined, undefined]);
    assert.doesNotMatch(JSON.stringify(backend.requests.map(({ rawHeaders }) => rawHeaders)), /forged/);
  });

  it('is taken for a minute, at one address, and for no other document of the key', async () => {
    const { gateway, backend } = testbed;
    const of = { issuer: gateway.config.merchant.publicBaseUrl, audience: backend.url, timeoutMs: 0 };
    const record = { receiptId: 'receipt_1', settledAt: 1 } as PaymentRecord;
    const made = (parts: Partial<typeof of>, at = Date.now()) =>
      createPaymentContext(key, { ...of, ...parts }, () => at)(record, 'r');
    assert.equal((await paymentOf(made({})))['receiptId'], 'receipt_1');
    const header = { alg: 'ES256', kid: key.publicJwk.kid, typ: 'agent-commerce-delivery+jwt' };
    const [, claims = ''] = made({})?.split('.') ?? [];
    const input = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${claims}`;
    for (const [why, jwt] of [
      ['too old', made({}, Date.now() - 61_000)],
      ['of another service', made({ audience: 'http://127.0.0.1:1' })],
      ['of another gateway', made({ issuer: 'https://other.example' })],
      ['another document', `${input}.${key.sign(input)}`],
    ] as const)
      await assert.rejects(paymentOf(jwt), why);
  });
});
