/** The gateway's free call over HTTP as a contestant. */

import { type Contestant, FROM_MERCHANT, plainQuestion } from '../contestant.ts';
import { FREE_RESOURCE, gatewayProgram, HTTP_SHOP, invocationOf } from '../gateway.ts';

/**
 * A free call through the whole pipeline to the backend and back; the log is on, events and
 * receipts are written.
 */
export const gatewayFree: Contestant = {
  id: 'free',
  suite: 'http',
  title: 'gateway, free invoke',
  question: plainQuestion(invocationOf(FREE_RESOURCE), 200, FROM_MERCHANT),
  readyPath: '/ready',
  against: { id: 'hpm-recipe', goal: 0.5 },
  program: gatewayProgram('free', HTTP_SHOP),
};
