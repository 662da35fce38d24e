/** The gateway over A2A as a contestant. */

import { SEND_QUESTION } from '../a2a.ts';
import type { Contestant } from '../contestant.ts';
import { gatewayProgram, toolShop } from '../gateway.ts';

/**
 * A free SendMessage through the whole pipeline to the backend and back as a task; the log is on,
 * events and receipts are written.
 */
export const gatewayA2a: Contestant = {
  id: 'a2a-send',
  suite: 'a2a',
  title: 'gateway, SendMessage, free',
  question: SEND_QUESTION,
  readyPath: '/ready',
  against: { id: 'sdk-send', goal: 0.5 },
  program: gatewayProgram('a2a-send', toolShop(5, 'a2a')),
};
