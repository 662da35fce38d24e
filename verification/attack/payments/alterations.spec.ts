import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { decode, encode, mutate, seconds } from '../../../spec/e2e/proofs.ts';
import { sign, type Terms, termsFor } from '../../../spec/payments/x402/signing.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack, measured, proven } from '../catalogue.ts';
import { ALTERATIONS } from './alterations.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
type Authorization = Parameters<typeof sign>[1];

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
