import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AcceptedMandate } from '../../src/mandates/ap2/reasons.ts';
import { isMandateClaim, readStoredMandate, storedMandate } from '../../src/mandates/stored-mandate.ts';
import { AT, claimOf, mandateText, useOf } from './claims.ts';

const CLAIM = claimOf('a', {
  at: AT + 0.25,
  open: [useOf('single'), useOf('recurring', { units: '10000', budgetUnits: '9007199254740991', periodStart: AT })],
});
const ACCEPTED: AcceptedMandate = {
  kind: 'accepted',
  mode: 'autonomous',
  issuer: 'https://agents.trusty.example',
  mandateId: 'qUZ_rn1xyNHX5eziiXBg',
  checkoutIssuer: 'https://api.market-shop.example',
  checkoutId: 'mAkKeR_dRCC1NLaCSQYiYA',
  reference: 'K-m8mHXUfiJUI3Tpv3VuP',
  referenceSdHash: '7PI_s5Z3JZoyGfgXa0eX',
  claim: CLAIM,
};

/** The last second of the year 9999, and an hour for clocks that differ. */
const LAST = 253_402_300_799 + 3_600;

describe('a mandate in a payment record', () => {
  it('is read as it was written, with all that a receipt states', () => {
    const stored = readStoredMandate(storedMandate(ACCEPTED)) ?? assert.fail();
    const { claim, ...others } = stored;
    assert.deepEqual(others, {
      method: 'ap2',
      mode: 'autonomous',
      reference: ACCEPTED.reference,
      referenceSdHash: ACCEPTED.referenceSdHash,
      mandateIssuer: ACCEPTED.issuer,
      checkoutIssuer: ACCEPTED.checkoutIssuer,
      checkoutId: ACCEPTED.checkoutId,
    });
    assert.deepEqual(JSON.parse(JSON.stringify(claim)), JSON.parse(JSON.stringify(CLAIM)));
    assert.equal(readStoredMandate(storedMandate({ ...ACCEPTED, mode: 'direct' }))?.mode, 'direct');
  });

  it('is nothing but that: no member more, none less, none of another kind', () => {
    const good = JSON.parse(mandateText(CLAIM)) as Record<string, unknown>;
    assert.ok(readStoredMandate(JSON.stringify(good)) !== undefined);
    for (const name of Object.keys(good)) {
      const { [name]: _gone, ...less } = good;
      assert.equal(readStoredMandate(JSON.stringify(less)), undefined, name);
      assert.equal(readStoredMandate(JSON.stringify({ ...good, [name]: 1 })), undefined, name);
    }
    for (const text of [
      '',
      'null',
      '[]',
      '"ap2"',
      '{',
      JSON.stringify({ ...good, presentation: 'eyJ' }),
      JSON.stringify({ ...good, mode: 'both' }),
      JSON.stringify({ ...good, method: 'ap1' }),
      JSON.stringify({ ...good, reference: '' }),
    ])
      assert.equal(readStoredMandate(text), undefined, text.slice(0, 40));
  });

  const recurring = (changes: object) => ({ ...CLAIM, open: [useOf('o', changes)] });
  const BAD: Readonly<Record<string, object>> = {
    'no time': { ...CLAIM, at: Number.NaN },
    'a time before all times': { ...CLAIM, at: -1 },
    'a time in milliseconds': { ...CLAIM, onceUntil: AT * 1_000 },
    'a time as text': { ...CLAIM, at: `${AT}` },
    'nothing that is used up': { ...CLAIM, once: [] },
    'one thing twice': { ...CLAIM, once: ['m:a', 'm:a'] },
    'too many things': { ...CLAIM, once: Array.from({ length: 9 }, (_, i) => `m:${i}`) },
    'a text of things': { ...CLAIM, once: 'm:a' },
    'an age as text': { ...CLAIM, age: '10' },
    'an age beyond all times': { ...CLAIM, age: LAST + 1 },
    'an empty id': { ...CLAIM, once: [''] },
    'a long id': { ...CLAIM, once: [`j:${'x'.repeat(255)}`] },
    'an id that is no text in UTF-8': { ...CLAIM, once: ['j:\ud800'] },
    'one open mandate twice': { ...CLAIM, open: [useOf('o'), useOf('o', {})] },
    'too many open mandates': { ...CLAIM, open: Array.from({ length: 17 }, (_, i) => useOf(`o${i}`)) },
    'an open mandate without end': { ...CLAIM, open: [{ id: 'o' }] },
    'a member of its own': { ...CLAIM, open: [{ ...useOf('o'), units: '1' }] },
    'units as a number': recurring({ units: 1 }),
    'units with an exponent': recurring({ units: '1e3' }),
    'units below nothing': recurring({ units: '-0' }),
    'units with a zero before them': recurring({ units: '01' }),
    'units beyond what is exact': recurring({ units: '9007199254740992' }),
    'a budget beyond what is exact': recurring({ budgetUnits: '9007199254740993' }),
    'occurrences by halves': recurring({ maxOccurrences: 0.5 }),
    'occurrences below none': recurring({ maxOccurrences: -1 }),
    'a period that began never': recurring({ periodStart: Number.POSITIVE_INFINITY }),
  };
  for (const [name, claim] of Object.entries(BAD))
    it(`claims nothing with ${name}`, () => {
      assert.equal(isMandateClaim(claim), false);
      const stored = { ...(JSON.parse(mandateText(CLAIM)) as object), claim };
      assert.equal(readStoredMandate(JSON.stringify(stored)), undefined);
    });

  it('claims up to its bounds', () => {
    for (const claim of [
      { ...CLAIM, once: Array.from({ length: 8 }, (_, i) => `m:${i}`) },
      { ...CLAIM, once: [`j:${'x'.repeat(254)}`, 'j:\u{1f4b6} \0"\\'] },
      { ...CLAIM, open: Array.from({ length: 16 }, (_, i) => useOf(`o${i}`)) },
      { ...CLAIM, age: LAST },
      { ...CLAIM, age: -LAST },
      { ...CLAIM, at: 0, onceUntil: LAST },
      recurring({ units: '0', budgetUnits: '9007199254740991', maxOccurrences: 0 }),
    ])
      assert.equal(isMandateClaim(claim), true);
  });
});
