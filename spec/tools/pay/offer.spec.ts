import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { UsageError } from '../../../src/cli/program.ts';
import { KNOWN_NETWORKS, LOCAL_TOKEN } from '../../../src/payments/pricing/networks.ts';
import { isAbove, networkName, paidIn, payableOffer, plain, priceOf } from '../../../tools/pay/offer.ts';

const UNKNOWN = `0x${'1'.repeat(40)}`;
const USDC = KNOWN_NETWORKS.get('eip155:8453')?.usdc?.address ?? assert.fail();

function asked(changes: object = {}): PaymentRequirements {
  return {
    ...{ scheme: 'exact', network: 'eip155:8453', amount: '10000', asset: USDC, payTo: `0x${'2'.repeat(40)}` },
    ...{ maxTimeoutSeconds: 120, extra: { name: 'USD Coin', version: '2' } },
    ...changes,
  };
}

function challenge(...accepts: readonly object[]): PaymentRequired {
  return { x402Version: 2, resource: { url: 'https://shop.example/x' }, accepts: accepts.map(asked) };
}

function offer(changes: object = {}) {
  return payableOffer(challenge(changes));
}

describe('the price of an offer', () => {
  const ROWS: readonly (readonly [what: string, changes: object, words: string])[] = [
    ['USDC of a known network', {}, '0.01 USDC'],
    ['USDC in lower case', { asset: USDC.toLowerCase() }, '0.01 USDC'],
    ['a whole number of it', { amount: '25000000' }, '25 USDC'],
    ['less than one hundredth', { amount: '1' }, '0.000001 USDC'],
    ['the token of the local chain', { network: 'eip155:31337', asset: LOCAL_TOKEN.address }, '0.01 TUSD'],
    [
      'a token that says it is USDC on a network where USDC is another',
      { asset: UNKNOWN, extra: { symbol: 'USDC', decimals: 6 } },
      `10000 base units of the token ${UNKNOWN}, by the seller's word 0.01 USDC`,
    ],
    [
      'a token with a name alone',
      { asset: UNKNOWN },
      `10000 base units of the token ${UNKNOWN}, which the seller calls USD Coin`,
    ],
    ['a token without any word', { asset: UNKNOWN, extra: {} }, `10000 base units of the token ${UNKNOWN}`],
    [
      'decimals that are none',
      { asset: UNKNOWN, extra: { decimals: 1e9 } },
      `10000 base units of the token ${UNKNOWN}`,
    ],
  ];
  for (const [what, changes, words] of ROWS)
    it(`${what}: ${words}`, () => assert.equal(priceOf(offer(changes)), words));

  it('has the name that the seller gives to the token of the local chain, and of no other token', () => {
    const local = { network: 'eip155:31337', asset: LOCAL_TOKEN.address };
    for (const [changes, called, words] of [
      [local, 'USDC', '0.01 USDC'],
      [local, 'a\u001b[2K', '0.01 a [2K'],
      [{ ...local, asset: UNKNOWN, extra: {} }, 'USDC', `10000 base units of the token ${UNKNOWN}`],
      [{ asset: UNKNOWN, extra: {} }, 'USDC', `10000 base units of the token ${UNKNOWN}`],
      [{}, 'TUSD', '0.01 USDC'],
    ] as const)
      assert.equal(priceOf(payableOffer(challenge(changes), called)), words);
  });

  it('names the network, by its title where it is known', () => {
    assert.equal(networkName(offer()), 'Base (eip155:8453)');
    assert.equal(networkName(offer({ network: 'eip155:999' })), 'eip155:999');
  });
});

describe('the offer that is paid', () => {
  it('is the first one by EIP-3009 on an EVM chain', () => {
    const found = payableOffer(
      challenge(
        { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
        { scheme: 'upto' },
        { extra: { assetTransferMethod: 'permit2' } },
        { amount: '0x10' },
        { amount: '7' },
        { amount: '8' },
      ),
    );
    assert.equal(found.requirements.amount, '7');
    assert.equal(found.chainId, 8453);
  });

  it('is the first in a token whose units are known, of a chain that a key is there for', () => {
    const local = { network: 'eip155:31337', asset: LOCAL_TOKEN.address };
    const several = challenge({ asset: UNKNOWN }, {}, local);
    assert.equal(paidIn(payableOffer(several, 'EURC')), '0.01 USDC on Base (eip155:8453)');
    const found = payableOffer(several, 'EURC', (chainId) => chainId === 31_337);
    assert.equal(paidIn(found), '0.01 TUSD on development chain (eip155:31337)');
    assert.equal(payableOffer(several, 'EURC', () => false).chainId, 8453);
    assert.equal(
      payableOffer(challenge({ asset: UNKNOWN }, { asset: UNKNOWN, amount: '7' })).requirements.amount,
      '10000',
    );
  });

  it('is none where nothing can be signed; the error names what is offered', () => {
    assert.throws(
      () => offer({ network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' }),
      /acg pay signs exact on eip155 chains; offered: exact 0x833\w+ on solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp$/,
    );
  });
});

describe('an offer is JSON of a stranger', () => {
  const ADDRESS = 'a text of 0x and 40 hexadecimal digits';
  const FAULTS: readonly (readonly [member: string, values: readonly unknown[], right: string])[] = [
    ['network', [['eip155:8453']], 'a CAIP-2 text such as eip155:8453'],
    ['amount', [10_000, ['10000'], '0x10', undefined], 'a text of 1 to 78 digits'],
    ['payTo', [[UNKNOWN], '0x1', `${UNKNOWN} `], ADDRESS],
    ['asset', [[USDC], '0x1', 7], ADDRESS],
    ['maxTimeoutSeconds', ['120', 3e9, 3_601, 0, 1.5, undefined], 'a whole number from 1 to 3600'],
  ];
  for (const [member, values, right] of FAULTS)
    it(`${member} must be ${right}, or nothing is signed`, () => {
      for (const value of values)
        assert.throws(
          () => offer({ [member]: value }),
          new RegExp(`\\(${member} must be ${right}\\); offered: exact `),
        );
    });
});

describe('--max', () => {
  const ROWS: readonly (readonly [most: string, isAbove: boolean])[] = [
    ['0.01', false],
    ['0.010000', false],
    ['1', false],
    ['0.009999', true],
    ['0.0099999999', true],
    ['0', true],
    ['10000units', false],
    ['9999units', true],
  ];
  for (const [most, above] of ROWS)
    it(`${most} ${above ? 'refuses' : 'allows'} 0.01 USDC`, () => assert.equal(isAbove(offer(), most), above));

  it('in units needs a token whose decimals are no word of the seller', () => {
    const unknown = offer({ asset: UNKNOWN, extra: { symbol: 'USDC', decimals: 18 } });
    assert.throws(
      () => isAbove(unknown, '1'),
      new UsageError(
        "the decimals of this token are known by the seller's word alone: give --max in base units, such as --max 10000units",
      ),
    );
    assert.equal(isAbove(unknown, '10000units'), false);
  });

  for (const most of ['', '-1', '1e3', '0x1', '1.', '.5', '10 units', '1,5'])
    it(`${JSON.stringify(most)} is no amount`, () => assert.throws(() => isAbove(offer(), most), UsageError));
});

describe('text of a seller', () => {
  it('reaches the terminal without what a terminal obeys, and not without end', () => {
    assert.equal(plain('a\u001b[2Jb\r\nc\u202ed\u009be'), 'a [2Jb  c d e');
    assert.equal(plain('x'.repeat(10_000)).length, 500);
  });
});
