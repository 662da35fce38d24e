import type { Contestant } from '../contestant.ts';
import { FREE_RESOURCE, gatewayProgram, invocationOf } from '../gateway.ts';

/** A free call through every layer to the merchant and back; the log is on, events and receipts are written. */
export const gatewayFree: Contestant = {
  id: 'free',
  title: 'gateway, free invoke',
  question: { path: invocationOf(FREE_RESOURCE), expect: 200 },
  readyPath: '/ready',
  against: { id: 'hpm-recipe', goal: 0.5 },
  program: gatewayProgram('free'),
};
