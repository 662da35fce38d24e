import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
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

  attack(
    'I14',
    'accepts ordering, asset swap, header confusion, price bait, lookalike domain, lifetime: one offer, named alike everywhere',
    async () => {
      const { x402, merchant } = testbed.gateway.config;
      for (const id of PAID) {
        const { terms, body, header } = await quote(id);
        const [offer] = terms.accepts;
        assert.ok(offer !== undefined && terms.accepts.length === 1);
        assert.deepEqual(withoutToken((await quote(id)).terms), withoutToken(terms));
        assert.deepEqual([offer.asset, offer.payTo], [x402?.asset, x402?.payTo]);
        assert.deepEqual(header, terms);
        for (const channel of ['mcp', 'a2a'] as const) {
          const { everything } = await buy(testbed.gateway.url, channel, { resourceId: id, input: inputOf(id) });
          assert.ok(everything.includes(JSON.stringify(terms.accepts).slice(1, -1)), `${channel} asks for another`);
        }
        const words = String(body['message']);
        const [, price = ''] = /^Payment of (\S+) TUSD is required for /.exec(words) ?? [];
        assert.equal(parseAmount(price, DECIMALS), BigInt(offer.amount), words);
        const text = JSON.stringify(body);
        for (const [address] of text.matchAll(/0x[0-9a-fA-F]{40}\b/g))
          assert.ok(address === offer.payTo || address === offer.asset, address);
        const { host } = new URL(merchant.publicBaseUrl);
        for (const [, site] of text.matchAll(/https?:\/\/([^/"\\]+)/g))
          assert.ok(site === host || site === SCHEMAS, String(site));
        assert.doesNotMatch(words, /ignore|instruction|system|must|immediately|wallet|seed/i);
        assert.equal(terms.resource.url, `${merchant.publicBaseUrl}/api/resources/${id}/invoke`);
        assert.ok(offer.maxTimeoutSeconds <= 120);
      }
    },
  );

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
});

/** The offer, without the token, which differs in every challenge. */
function withoutToken<Terms extends object>(terms: Terms): unknown {
  const { extensions, ...rest } = structuredClone(terms) as Terms & { readonly extensions?: Record<string, unknown> };
  const { 'agent-commerce-buyer': token, ...others } = extensions ?? {};
  assert.ok(token !== undefined);
  return { ...rest, extensions: others };
}
