/** The gateway's 402 as a contestant. */

import { type Contestant, plainQuestion } from '../contestant.ts';
import { gatewayProgram, HTTP_SHOP, invocationOf, PAID_RESOURCE } from '../gateway.ts';

/**
 * A call without a proof: validated, priced and answered 402; the log is on, events are written.
 */
export const gatewayChallenge: Contestant = {
  id: 'challenge',
  suite: 'http',
  title: 'gateway, 402 challenge',
  question: plainQuestion(invocationOf(PAID_RESOURCE), 402, '"code":"PAYMENT_REQUIRED"'),
  readyPath: '/ready',
  against: { id: 'express', goal: 1 },
  program: gatewayProgram('challenge', HTTP_SHOP),
};
