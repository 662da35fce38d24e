/** The call that the A2A suite measures. */

import { AGENT_HEADERS, FROM_MERCHANT, INPUT, type Question } from './contestant.ts';
import { CALLED } from './tools.ts';

/** Where gateway and peer serve A2A. */
export const A2A_PATH = '/a2a';

/** `SendMessage` of A2A 1.0 to a free skill that asks the merchant. */
export const SEND_QUESTION: Question = {
  path: A2A_PATH,
  headers: { ...AGENT_HEADERS, 'a2a-version': '1.0' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: {
      message: {
        messageId: '6f1c2a4e-3f0b-4a57-9a53-2b8f6f0f6f11',
        role: 'ROLE_USER',
        parts: [{ data: { resource: CALLED, input: INPUT }, mediaType: 'application/json' }],
      },
    },
  }),
  expect: 200,
  holds: FROM_MERCHANT,
};
