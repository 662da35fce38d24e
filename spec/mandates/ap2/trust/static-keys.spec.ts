import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkoutKeysOf } from '../../../../src/mandates/ap2/checkout.ts';
import { staticIssuer } from '../../../../src/mandates/ap2/issuers.ts';
import { MAX_KID_LENGTH, readStaticKeys } from '../../../../src/mandates/ap2/keys.ts';
import { issuerKey, leakedKey } from './issuer-keys.ts';

const { jwk } = issuerKey('one');

describe('configured keys', () => {
  it('are taken by kid, the longest kid included', () => {
    const longest = 'x'.repeat(MAX_KID_LENGTH);
    const { keys, faults } = readStaticKeys([jwk, issuerKey(longest).jwk]);
    assert.deepEqual([...keys.keys()], ['one', longest]);
    assert.deepEqual(faults, []);
  });

  const bad: Readonly<Record<string, readonly [second: typeof jwk, message: RegExp]>> = {
    'has a private half': [leakedKey('two'), /private members/],
    'has a kid that is too long': [issuerKey('x'.repeat(MAX_KID_LENGTH + 1)).jwk, /1 to 512 printable/],
    'has no kid': [issuerKey('').jwk, /1 to 512 printable/],
    'has the kid of another': [issuerKey('one').jwk, /no other key here has/],
  };
  for (const [what, [second, message]] of Object.entries(bad))
    it(`a key that ${what} is named by its index, and makes no issuer`, () => {
      const { faults } = readStaticKeys([jwk, second]);
      assert.deepEqual(
        faults.map(({ index }) => index),
        [1],
      );
      assert.match(faults[0]?.message ?? '', message);
      assert.throws(() => staticIssuer({ id: 'a', keys: [jwk, second] }), /^Error: key 1 of a must /);
    });

  it('are asked for an issuer and a kid unless the kid alone was allowed', () => {
    assert.equal(staticIssuer({ id: 'a', keys: [jwk] }).allowKidOnly, false);
    assert.equal(staticIssuer({ id: 'a', keys: [jwk], allowKidOnly: true }).allowKidOnly, true);
  });
});

it('a checkout key that the configuration should have refused is an error', () =>
  assert.throws(
    () => checkoutKeysOf({ signingKey: 'none', kid: undefined, alsoTrust: [] }),
    /the configuration let a key pass/,
  ));
