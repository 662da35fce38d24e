import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Reason } from '../../../src/mandates/ap2/reasons.ts';
import { base64url, type Draft, hashOf, placeholder } from '../../../tools/mandate/maker/tokens.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import { verdictOn } from './full-mandates.ts';
import { resultOf } from './table.ts';

/** A hand that writes the JSON of the mandate as no library would. */
function written(from: string, to: string): Hand {
  return {
    draft(draft: Draft) {
      const json = Buffer.from(draft.disclosures.at(-1)?.text ?? '', 'base64url').toString('utf8');
      assert.ok(json.includes(from));
      const text = base64url(json.replace(from, to));
      const whole = { text, digest: hashOf(text) };
      const claims = changed(draft.claims, { delegate_payload: [placeholder(whole)] });
      return { ...draft, claims, disclosures: [...draft.disclosures.slice(0, -1), whole] };
    },
  };
}

describe('a signed mandate with unusual JSON', () => {
  const ROWS: readonly (readonly [what: string, from: string, to: string, result: Reason | 'accepted'])[] = [
    ['with a number in powers', '"max":10000', '"max":1e4', 'accepted'],
    ['with a number with a point', '"max":10000', '"max":10000.0', 'accepted'],
    ['with a number beyond all numbers', '"max":10000', '"max":1e400', 'claims_invalid'],
    ['with a number that is not exact', '"max":10000', '"max":9007199254740993', 'claims_invalid'],
    ['with a number that hides that it is not', '"max":10000', '"max":9007199254740993.0', 'claims_invalid'],
    ['with a name in escapes', '"max":10000', '"m\\u0061x":10000', 'accepted'],
    ['with a name twice', '"max":10000', '"max":10000,"max":99999', 'disclosure_invalid'],
    ['with a name twice, once in escapes', '"max":10000', '"max":10000,"m\\u0061x":99999', 'disclosure_invalid'],
    ['with half a character', '"max":10000', '"max":10000,"x":"\\ud800"', 'disclosure_invalid'],
    ['with a name that changes prototypes', '"max":10000', '"max":10000,"__proto__":{}', 'disclosure_invalid'],
    ['with another letter that looks the same', '"USDC"', '"USD\u0421"', 'constraint_violated'],
    ['with a type that every object has', '"payment.allowed_payees"', '"constructor"', 'constraint_unresolved'],
    ['with a type and a space', '"payment.allowed_payees"', '"payment.allowed_payees "', 'constraint_unresolved'],
    ['nested too deep', '"max":10000', `"max":10000,"x":${'['.repeat(13)}${']'.repeat(13)}`, 'disclosure_invalid'],
  ];
  for (const [what, from, to, result] of ROWS)
    it(`${what}: ${result}`, async () => {
      const [given] = await resultOf(verdictOn({ openPayment: written(from, to) }));
      assert.equal(given, result);
    });
});
