import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { receiptWhen } from '../../../spec/support/records.ts';
import { sampleResources } from '../../../spec/support/resources.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { parseAmount } from '../../../src/payments/pricing/amount.ts';
import { attack } from '../catalogue.ts';
import { ALL_CHANNELS, buy, MESSAGE_CHANNELS } from './channels.ts';

const DECIMALS = 6;
/** The name of a language, which is no resource. */
const SCHEMAS = 'json-schema.org';
const SAMPLES = Object.keys(sampleResources('TUSD'));
const PAID = SAMPLES.filter((id) => id !== 'cities' && !id.startsWith('free_'));
/** An input that every operation of the sample accepts. */
const inputOf = (id: string): object =>
  id.startsWith('failing')
    ? { status: 500 }
    : id.startsWith('flaky')
      ? { failures: 0 }
      : id === 'market_report'
        ? { city: 'Berlin' }
        : {};

interface Terms {
  readonly x402Version: number;
  readonly resource: { readonly url: string };
  readonly accepts: readonly {
    readonly amount: string;
    readonly payTo: string;
    readonly asset: string;
    readonly maxTimeoutSeconds: number;
    readonly extra: object;
  }[];
}

describe('x402-redteam: the 402 gives a guarded buyer no reason to refuse', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());

  const quote = async (
    id: string,
  ): Promise<{ readonly terms: Terms; readonly body: Record<string, unknown>; readonly header: unknown }> => {
    const response = await testbed.gateway.invoke(id, inputOf(id));
    const body = (await response.json()) as Record<string, unknown> & { payment: { envelope: Terms } };
    const header = JSON.parse(
      Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString(),
    ) as unknown;
    return { terms: body.payment.envelope, body, header };
  };

  attack('I14', 'accepts ordering, asset swap, rail switch: one offer, and the same one every time', async () => {
    for (const id of PAID) {
      const first = await quote(id);
      assert.equal(first.terms.accepts.length, 1);
      for (let again = 0; again < 3; again += 1)
        assert.deepEqual(withoutToken((await quote(id)).terms), withoutToken(first.terms));
      const { asset, payTo } = testbed.gateway.config.x402 ?? {};
      assert.deepEqual([first.terms.accepts[0]?.asset, first.terms.accepts[0]?.payTo], [asset, payTo]);
    }
  });

  attack('I14', 'header confusion: header, body and every channel have the same terms', async () => {
    for (const id of PAID) {
      const { terms, header } = await quote(id);
      assert.deepEqual(header, terms);
      for (const channel of ['mcp', 'a2a'] as const) {
        const { everything } = await buy(testbed.gateway.url, channel, { resourceId: id, input: inputOf(id) });
        const accepts = JSON.stringify(terms.accepts).slice(1, -1);
        assert.ok(everything.includes(accepts), `${channel} asks for something else`);
        const amounts = [...everything.matchAll(/\\*"amount\\*":\\*"([^"\\]+)/g)].map(([, amount = '']) => amount);
        const [offered = ''] = terms.accepts.map(({ amount }) => amount);
        for (const amount of amounts)
          assert.ok(amount === offered || parseAmount(amount, DECIMALS) === BigInt(offered), `${amount} in ${channel}`);
      }
    }
  });

  attack(
    'I14',
    'price bait, unit confusion, prose payment: the texts name the structured amount, and no other address or site',
    async () => {
      for (const id of PAID) {
        const { terms, body } = await quote(id);
        const [offer] = terms.accepts;
        assert.ok(offer !== undefined);
        const words = String(body['message']);
        const [, price = ''] = /^Payment of (\S+) TUSD is required for /.exec(words) ?? [];
        assert.equal(parseAmount(price, DECIMALS), BigInt(offer.amount), words);
        const text = JSON.stringify(body);
        const known = new Set([offer.payTo, offer.asset]);
        assert.deepEqual(
          [...text.matchAll(/0x[0-9a-fA-F]{40}\b/g)].filter(([address]) => !known.has(address)),
          [],
        );
        const { host } = new URL(testbed.gateway.config.merchant.publicBaseUrl);
        for (const [, site] of text.matchAll(/https?:\/\/([^/"\\]+)/g))
          assert.ok(site === host || site === SCHEMAS, String(site));
        assert.doesNotMatch(words, /ignore|instruction|system|must|immediately|wallet|seed/i);
      }
    },
  );

  attack(
    'I14',
    'lookalike domain, resource spoof: the offer names the called resource, on the published host',
    async () => {
      for (const id of PAID) {
        const { terms } = await quote(id);
        assert.equal(terms.resource.url, `${testbed.gateway.config.merchant.publicBaseUrl}/api/resources/${id}/invoke`);
      }
    },
  );

  attack('I14', 'authorization lifetime: minutes, and a longer one is refused', async () => {
    for (const id of PAID) assert.ok(((await quote(id)).terms.accepts[0]?.maxTimeoutSeconds ?? Number.NaN) <= 120);
  });

  attack('I14', 'ghost paywall: no challenge for a free or unknown resource or an invalid call', async () => {
    for (const channel of MESSAGE_CHANNELS)
      for (const [resourceId, input] of [
        ['cities', {}],
        ['free_greeting', {}],
        ['no_such_resource', {}],
        ['market_report', {}],
        ['market_report', { city: 7 }],
        ['market_report', { city: 'Berlin', more: 1 }],
      ] as const)
        assert.notEqual(
          (await buy(testbed.gateway.url, channel, { resourceId, input })).outcome,
          'asked',
          `${channel} ${resourceId}`,
        );
  });

  attack(
    'I14',
    'fake delivery, budget split: one payment buys the whole answer, and a failure is never reported as delivered',
    async () => {
      const before = await testbed.buyer.balance();
      const bought = await buy(testbed.gateway.url, 'http', {
        resourceId: 'market_report',
        input: { city: 'Rome' },
        proof: await testbed.proof('market_report', { city: 'Rome' }),
      });
      assert.equal((JSON.parse(bought.bytes.toString()) as { city: string }).city, 'Rome');
      assert.equal(before - (await testbed.buyer.balance()), 10_000n);
      const failed = await buy(testbed.gateway.url, 'http', {
        resourceId: 'failing',
        input: { status: 500 },
        proof: await testbed.proof('failing', { status: 500 }),
      });
      assert.deepEqual([failed.outcome, failed.state], ['failed', 'undelivered']);
      assert.equal((await receiptWhen(testbed.gateway, failed.requestId, false)).delivered, false);
    },
  );

  attack('I14', 'retry storm: a refused proof is not retryable, and no text asks for a retry', async () => {
    const payload = decode(await testbed.proof('market_report', inputOf('market_report')));
    const proof = encode({ ...payload, accepted: { ...payload.accepted, amount: '1' } });
    for (let again = 0; again < 5; again += 1) {
      const response = await testbed.gateway.invoke('market_report', inputOf('market_report'), {
        'payment-signature': proof,
      });
      const { error } = (await response.json()) as { error: { retryable: boolean } };
      assert.deepEqual([response.status, error.retryable, response.headers.get('retry-after')], [402, false, null]);
    }
  });
});

/** The offer, without the token, which differs in every challenge. */
function withoutToken<Terms extends object>(terms: Terms): unknown {
  const { extensions, ...rest } = structuredClone(terms) as Terms & { readonly extensions?: Record<string, unknown> };
  const { 'agent-commerce-buyer': token, ...others } = extensions ?? {};
  assert.ok(token !== undefined);
  return { ...rest, extensions: others };
}
