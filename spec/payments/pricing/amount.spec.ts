import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findDefaultAsset } from '@x402/evm';
import fc from 'fast-check';
import {
  AmountError,
  type AmountFault,
  formatAmount,
  MAX_AMOUNT_LENGTH,
  parseAmount,
} from '../../../src/payments/pricing/amount.ts';
import { KNOWN_NETWORKS } from '../../../src/payments/pricing/networks.ts';

const UINT256_MAX = (1n << 256n) - 1n;
const faultOf = (text: string, decimals: number): AmountFault | undefined => {
  try {
    parseAmount(text, decimals);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof AmountError);
    return error.reason;
  }
};

describe('amounts', () => {
  const exact: readonly [string, number, bigint][] = [
    ['0', 6, 0n],
    ['0.01', 6, 10_000n],
    ['1.005', 6, 1_005_000n],
    ['0.000001', 6, 1n],
    ['0.0000010000', 6, 1n],
    ['12', 0, 12n],
    ['12.000', 0, 12n],
    ['1', 18, 10n ** 18n],
    [UINT256_MAX.toString(), 0, UINT256_MAX],
  ];
  for (const [text, decimals, units] of exact)
    it(`reads ${text.slice(0, 20)} with ${decimals} decimals exactly`, () =>
      assert.equal(parseAmount(text, decimals), units));

  const refused: readonly [string, number, AmountFault][] = [
    ['', 6, 'malformed'],
    ['-1', 6, 'malformed'],
    ['.5', 6, 'malformed'],
    ['1e3', 6, 'malformed'],
    ['١', 6, 'malformed'],
    ['0.0000001', 6, 'too_precise'],
    ['0.1000001', 6, 'too_precise'],
    ['0.5', 0, 'too_precise'],
    [(UINT256_MAX + 1n).toString(), 0, 'too_large'],
    ['1'.padEnd(79, '0'), 6, 'too_large'],
    ['1'.repeat(MAX_AMOUNT_LENGTH + 1), 6, 'too_long'],
  ];
  for (const [text, decimals, reason] of refused)
    it(`refuses ${JSON.stringify(text.slice(0, 20))} with ${decimals} decimals as ${reason}`, () =>
      assert.equal(faultOf(text, decimals), reason));

  it('never quotes the text it refuses', () =>
    assert.throws(
      () => parseAmount('hunter2', 6),
      (error) => !String(error).includes('hunter2'),
    ));

  it('reads the longest text and not one character more', () => {
    const longest = '1.'.padEnd(MAX_AMOUNT_LENGTH, '0');
    assert.equal(parseAmount(longest, 6), 1_000_000n);
    assert.equal(faultOf(`${longest}0`, 6), 'too_long');
  });

  it('never changes an amount on a round trip through display units', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: UINT256_MAX }), fc.integer({ min: 0, max: 36 }), (units, decimals) => {
        const text = formatAmount(units, decimals);
        assert.match(text, /^(0|[1-9]\d*)(\.\d*[1-9])?$/);
        assert.equal(parseAmount(text, decimals), units);
      }),
      { numRuns: 20_000 },
    );
  });

  it('reads any text as a second parser does, or refuses it', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789..eE+-_ ,x\n٣０'), maxLength: 14 });
    const near = fc
      .tuple(fc.nat(), fc.nat(), fc.constantFrom('', '0', '.', 'e1', ' ', '\0'))
      .map(([a, b, c]) => `${a}.${b}${c}`);
    fc.assert(
      fc.property(
        fc.oneof(digits, near, fc.string({ maxLength: 40 })),
        fc.integer({ min: 0, max: 18 }),
        (text, decimals) => {
          const reason = faultOf(text, decimals);
          const wellFormed =
            [...text].every((c) => '0123456789.'.includes(c)) && /^(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text);
          if (!wellFormed) return reason === 'malformed';
          const [whole = '', fraction = ''] = text.split('.');
          const shift = 10n ** BigInt(fraction.length);
          const scaled = (BigInt(whole) * shift + BigInt(fraction || '0')) * 10n ** BigInt(decimals);
          if (scaled % shift !== 0n) return reason === 'too_precise';
          return reason === undefined && parseAmount(text, decimals) === scaled / shift;
        },
      ),
      { numRuns: 50_000 },
    );
  });

  for (const decimals of [-1, 37, 1.5, Number.NaN])
    it(`takes ${decimals} decimals for a bug`, () => {
      assert.throws(() => parseAmount('1', decimals), RangeError);
      assert.throws(() => formatAmount(1n, decimals), RangeError);
    });

  it('formats no amount that a chain cannot hold', () => {
    assert.throws(() => formatAmount(-1n, 6), RangeError);
    assert.throws(() => formatAmount(UINT256_MAX + 1n, 6), RangeError);
  });
});

/** Networks of which the official package has no USDC. */
const WITHOUT: ReadonlySet<string> = new Set(['eip155:43113', 'eip155:80002', 'eip155:11155111']);

describe('the USDC of a known network', () => {
  for (const { title, chainId, usdc } of KNOWN_NETWORKS.values()) {
    if (usdc === undefined) continue;
    const network = `eip155:${chainId}` as const;
    it(`is that of the official package, with its EIP-712 domain: ${title}`, () => {
      const official = findDefaultAsset(usdc.address, network);
      if (WITHOUT.has(network)) return assert.equal(official, undefined, 'can be compared now');
      const { asset, name, version, decimals } = official ?? assert.fail('unknown there');
      assert.deepEqual(
        { address: asset.toLowerCase(), name, version, decimals },
        { ...usdc, address: usdc.address.toLowerCase() },
      );
    });
  }
});
