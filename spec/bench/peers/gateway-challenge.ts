import type { Contestant } from '../contestant.ts';
import { gatewayProgram, invocationOf, PAID_RESOURCE } from '../gateway.ts';

/** A call without a proof: validated, priced and answered 402; the log is on, events are written. */
export const gatewayChallenge: Contestant = {
  id: 'challenge',
  title: 'gateway, 402 challenge',
  question: { path: invocationOf(PAID_RESOURCE), expect: 402 },
  readyPath: '/ready',
  against: { id: 'express', goal: 1 },
  program: gatewayProgram('challenge'),
};
