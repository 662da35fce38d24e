import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { REASONS, type Reason } from '../../../src/mandates/ap2/reasons.ts';
import { unauthorized } from '../../../src/pipeline/middleware/authorize.ts';
import { purchaseWith } from '../../support/ap2/purchase.ts';
import { ACCEPTED, scriptedMandates } from '../calls.ts';

/** `message` of schemas/error.schema.json. */
const MOST_CHARACTERS = 300;

describe('the message for a refused mandate', () => {
  const { mandates } = scriptedMandates(ACCEPTED);
  const journal = { record: () => undefined } as unknown as Parameters<typeof unauthorized>[0]['journal'];
  const errorFor = (reason: Reason) =>
    unauthorized({ journal }, mandates, purchaseWith(), { reason, reference: undefined, issuer: undefined });
  const reasons = Object.keys(REASONS) as Reason[];

  it('is a sentence of its own for every reason, short enough for the error envelope', () => {
    const messages = new Set<string>();
    for (const reason of reasons) {
      const { message, details } = errorFor(reason);
      assert.equal(details?.reason, reason);
      assert.ok(message.length <= MOST_CHARACTERS, `${reason}: ${message.length}`);
      assert.match(message, /^[\x20-\x7e]+\.$/, reason);
      messages.add(message);
    }
    assert.equal(messages.size, reasons.length);
  });

  it('names the fresh checkout only where one comes with the answer, and would help', () => {
    const again = /Make one for the fresh checkout in authorization\.$/;
    for (const reason of ['checkout_expired', 'input_mismatch', 'replayed'] as const)
      assert.match(errorFor(reason).message, again);
    for (const reason of ['untrusted_issuer', 'unknown_key', 'open_mandate_spent', 'budget_exceeded'] as const)
      assert.doesNotMatch(errorFor(reason).message, again);
    assert.doesNotMatch(errorFor('provider_unavailable').message, /authorization/);
  });
});
