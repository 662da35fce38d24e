import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { ABSENT, decode, encode, MUTATIONS, type Mutation, mutate, OTHER, seconds } from '../../../spec/e2e/proofs.ts';
import { sign, type Terms, termsFor } from '../../../spec/payments/x402/signing.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack, measured, proven } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
type Authorization = Parameters<typeof sign>[1];

const VALUE = 'payload.authorization.value';
const SPELLED_WRONG: readonly (readonly [what: string, value: unknown])[] = [
  ['zero', '0'],
  ['negative', '-10000'],
  ['2^256', String(2n ** 256n)],
  ['2^256 more', String(2n ** 256n + 10_000n)],
  ['a fraction', '10000.0'],
  ['an exponent', '1e4'],
  ['a plus sign', '+10000'],
  ['a leading zero', '010000'],
  ['hexadecimal', '0x2710'],
  ['digits of another script', '１００００'],
  ['a space', ' 10000'],
  ['a separator', '10_000'],
  ['a list', ['10000']],
  ['nothing', ''],
  ['null', null],
  ['2,000 digits', '9'.repeat(2_000)],
];
const row = (field: string, at: string, to: unknown): Pick<Mutation, 'field' | 'at' | 'to'> => ({ field, at, to });

/** Every way to differ from the offer; each is refused with a 402 and no money moves. */
const ALTERATIONS: readonly Pick<Mutation, 'field' | 'at' | 'to'>[] = [
  ...MUTATIONS,
  ...SPELLED_WRONG.map(([what, value]) => row(`authorization.value: ${what}`, VALUE, value)),
  // A leading zero is the same integer: echoed amounts are compared as numbers, the signed value as
  // on the chain.
  ...SPELLED_WRONG.filter(([what]) => what !== 'a leading zero').map(([what, value]) =>
    row(`accepted.amount: ${what}`, 'accepted.amount', value),
  ),
  row('x402Version as text', 'x402Version', '2'),
  row('x402Version 3', 'x402Version', 3),
  row('no accepted', 'accepted', ABSENT),
  row('accepted as a list', 'accepted', []),
  row('another family of networks', 'accepted.network', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'),
  row('a network name of version 1', 'accepted.network', 'base-sepolia'),
  row('a recipient of zeros', 'payload.authorization.to', `0x${'0'.repeat(40)}`),
  row('the payer as recipient', 'payload.authorization.to', OTHER),
  row('a nonce of 31 bytes', 'payload.authorization.nonce', `0x${'34'.repeat(31)}`),
  row('a nonce of 33 bytes', 'payload.authorization.nonce', `0x${'34'.repeat(33)}`),
  row('a signature of 64 bytes', 'payload.signature', `0x${'11'.repeat(64)}`),
  row('an empty signature', 'payload.signature', '0x'),
  row('a signature of 8 KiB', 'payload.signature', `0x${'11'.repeat(3_000)}`),
];

describe('a proof for other terms than the offer', () => {
  let liar: HostileFacilitator;
  let testbed: Testbed;
  let terms: Terms;
  before(async () => {
    // This facilitator approves everything: every refusal here comes from the gateway itself.
    liar = await startHostileFacilitator('eip155:31337');
    testbed = await openTestbed({ facilitator: { mode: 'remote', url: liar.url }, overrides: ALL_CHANNELS });
    terms = termsFor(testbed.chain.token);
  });
  after(async () => {
    await testbed.close();
    await liar.stop();
  });

  const bring = async (proof: string): Promise<readonly Seen[]> => {
    const asked = liar.calls.filter(({ path }) => path !== '/supported').length;
    const answers = await Promise.all(
      CHANNELS.map((channel) => buy(testbed.gateway.url, channel, { ...RESOURCE, proof })),
    );
    assert.equal(liar.calls.filter(({ path }) => path !== '/supported').length, asked, 'no facilitator call');
    return answers;
  };
  const refused = (answers: readonly Seen[], what: string): void => {
    for (const [at, { outcome, reason, everything }] of answers.entries()) {
      assert.equal(outcome, 'asked', `${what} over ${CHANNELS[at]}: ${everything}`);
      assert.equal(typeof reason, 'string', what);
    }
  };
  /** A proof that the buyer has signed, for altered terms. */
  const signed = async (changes: Partial<Authorization>, under: Terms = terms): Promise<string> => {
    const payload = decode(await testbed.proof(RESOURCE.resourceId, RESOURCE.input));
    const authorization = { ...(payload.payload.authorization as unknown as Authorization), ...changes };
    const signature = await sign(testbed.buyer.account, authorization, under);
    return encode({ ...payload, payload: { authorization, signature } });
  };

  for (const { field, at, to } of ALTERATIONS)
    attack('X4', `${field}: refused over every channel, and no facilitator is asked`, async (context) => {
      const payload = decode(await testbed.proof(RESOURCE.resourceId, RESOURCE.input));
      mutate(payload, at, to);
      refused(await bring(encode(payload)), field);
      measured(context, 'unpaid deliveries', 0);
    });

  for (const [what, changes] of [
    ['one unit less', { value: '9999' }],
    ['one unit more', { value: '10001' }],
    ['nothing', { value: '0' }],
    ['another payee', { to: `0x${'12'.repeat(20)}` }],
    ['the token', 'token'],
    ['himself', 'self'],
  ] as const)
    attack(['X4', 'X10', 'I5'], `validly signed, but pays ${what}: refused over every channel`, async () => {
      const to = { self: testbed.buyer.address, token: terms.asset };
      refused(await bring(await signed(typeof changes === 'string' ? { to: to[changes] } : changes)), what);
    });

  for (const [what, under] of [
    [
      'another chain',
      (own: Terms) => termsFor({ address: own.asset, name: own.assetName, version: own.assetVersion }, 1),
    ],
    ['another token', (own: Terms) => ({ ...own, asset: `0x${'34'.repeat(20)}` })],
    ['another name of the token', (own: Terms) => ({ ...own, assetName: 'USD Coin' })],
    ['another version of the token', (own: Terms) => ({ ...own, assetVersion: '1' })],
  ] as const)
    attack('X4', `validly signed, for ${what}: refused over every channel`, async () => {
      refused(await bring(await signed({}, under(terms))), what);
    });

  /** Seconds around now; the slack covers the duration of a test. */
  const SLACK = 5;
  for (const [what, window] of [
    ['has ended', () => ({ validBefore: String(seconds() - 1) })],
    ['ends too soon to be settled', () => ({ validBefore: String(seconds() + 1) })],
    ['has not begun', () => ({ validAfter: String(seconds() + 2 * SLACK) })],
    ['ends after the longest time', () => ({ validBefore: String(seconds() + 120 + 600 + SLACK) })],
    ['is in milliseconds', () => ({ validBefore: String(Date.now() + 60_000) })],
    ['never ends', () => ({ validBefore: String(2n ** 256n - 1n) })],
    ['ends before it begins', () => ({ validAfter: String(seconds() - 10), validBefore: String(seconds() - 20) })],
  ] as const)
    attack('X6', `validly signed, in a window that ${what}: refused over every channel`, async () => {
      refused(await bring(await signed(window())), what);
    });

  attack('X4', 'after all of them no money has moved, and the honest proof still buys', async () => {
    assert.equal(await testbed.income(), 0n);
    assert.equal(testbed.backend.requests.length, 0);
  });

  proven(
    'X6',
    'spec/payments/x402/verify/verify.spec.ts',
    'names the first check that fails, in the order of the contract',
  );
});
