import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type AbiFunction, toEventSelector, toFunctionSelector } from 'viem';
import { CONTRACTS, MULTICALL3_ABI, TOKEN_ABI } from '../../tools/local-world/contracts.ts';

const CONTRACTS_DIRECTORY = join(import.meta.dirname, '../../tools/local-world/contracts');

describe('the compiled contracts', () => {
  for (const [name, { source, sourceSha256 }] of Object.entries(CONTRACTS.contracts)) {
    it(`${name} was compiled from the source that is committed`, () => {
      const text = readFileSync(join(CONTRACTS_DIRECTORY, source));
      assert.equal(createHash('sha256').update(text).digest('hex'), sourceSha256);
    });
  }

  it('every source has an artefact, made by solc 0.8.28', () => {
    const sources = readdirSync(CONTRACTS_DIRECTORY).filter((file) => file.endsWith('.sol'));
    assert.deepEqual(
      sources.sort(),
      Object.values(CONTRACTS.contracts)
        .map(({ source }) => source)
        .sort(),
    );
    assert.match(CONTRACTS.compiler, /^0\.8\.28\+/);
  });

  const selectors = [
    ['transferWithAuthorization with v, r, s', '0xe3ee160e', 9],
    ['transferWithAuthorization with bytes', '0xcf092995', 7],
    ['authorizationState', '0xe94a0102', 2],
    ['cancelAuthorization with v, r, s', '0x5a049a70', 5],
  ] as const;
  for (const [rule, selector, inputs] of selectors) {
    it(`${rule} has the published selector ${selector}`, () => {
      for (const abi of [CONTRACTS.contracts.Eip3009Token.abi, TOKEN_ABI]) {
        const found = abi.find(
          (item): item is AbiFunction => item.type === 'function' && toFunctionSelector(item) === selector,
        );
        assert.equal(found?.inputs.length, inputs);
      }
    });
  }

  it('the events have the published topics', () => {
    const topics = TOKEN_ABI.filter((item) => item.type === 'event').map((item) => toEventSelector(item));
    assert.deepEqual(topics, [
      '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5',
      '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81',
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    ]);
  });

  it('aggregate3 has the published selector', () => {
    const [aggregate3] = MULTICALL3_ABI;
    assert.equal(toFunctionSelector(aggregate3), '0x82ad56cb');
  });
});
