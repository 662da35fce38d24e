/** One resource that needs a mandate, bought over one channel. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Purchase } from '../../src/mandates/ap2/purchase.ts';
import type { Presentation, Wishes } from '../support/ap2/wishes.ts';
import type { ConfigObject } from '../support/config.ts';
import type { Body, Call, Reply, Send } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';

export { now } from './mandate-seller.ts';

/** Of `TOOL`: 0.01 of a token with six decimals. */
export const PRICE_UNITS = 10_000n;
export const TOOL = 'market_report';
export const INPUT = { city: 'Berlin' };

/** A gateway that sells reports under a mandate, called over one channel. */
export interface MandateTestbed extends MandateSeller {
  send(call: Call): Promise<Reply>;
  /** The challenge of a report. */
  challenged(input?: object): Promise<Body>;
  /** A payment of the buyer for a challenge. */
  proofFor(body: Body): Promise<string>;
  report(input?: object): Purchase;
  /** That the mandate names the payment of a report, too. */
  pays(input?: object): Wishes;
}

/** Opens a gateway whose `TOOL`, `flaky` and `free_market_report` need a mandate. */
export async function openMandateTestbed(send: Send, more: ConfigObject = {}): Promise<MandateTestbed> {
  const testbed = await openMandateSeller([TOOL, 'flaky', 'free_market_report'], more);
  const { gateway, buyer } = testbed;
  const report = (input: object = INPUT): Purchase => testbed.purchaseOf(TOOL, 'Market report', input, '0.01');
  return {
    ...testbed,
    report,
    send: (call) => send(gateway, call),
    pays: (input) => ({ purchase: report(input), payment: true }),
    proofFor: (body) => buyer.pay(body.payment?.envelope),
    async challenged(input = INPUT) {
      const asked = await send(gateway, { resourceId: TOOL, input });
      assert.equal(asked.code, 'PAYMENT_REQUIRED', asked.raw);
      return asked.body;
    },
  };
}

/** What clients look a receipt up by: SHA-256 of the last JWT. */
export function leaf({ segments }: Pick<Presentation, 'segments'>): string {
  const [jwt = ''] = (segments.at(-1) ?? '').split('~');
  return createHash('sha256').update(jwt).digest('base64url');
}
