/** The gateway over MCP as contestants. */

import type { Contestant, Question } from '../contestant.ts';
import { gatewayProgram, toolShop } from '../gateway.ts';
import { callQuestion, listQuestion } from '../mcp.ts';

/**
 * Lists from bytes made at start, calls through the whole pipeline; the log is on, events and
 * receipts are written.
 */
export const gatewayMcp: readonly Contestant[] = [
  contestant('mcp-list-5', 'tools/list of 5', listQuestion(5, 'modern'), 5, { id: 'sdk-list-5', goal: 1 / 3 }),
  contestant('mcp-list-55', 'tools/list of 55', listQuestion(55, 'modern'), 55, { id: 'sdk-list-55', goal: 1 / 3 }),
  contestant('mcp-list-5-legacy', 'tools/list of 5, 2025', listQuestion(5, 'legacy'), 5, {
    id: 'sdk-list-5-legacy',
    goal: 1 / 3,
  }),
  contestant('mcp-call', 'tools/call, free', callQuestion(), 5, { id: 'sdk-call' }),
];

function contestant(
  id: string,
  what: string,
  question: Question,
  count: number,
  against: NonNullable<Contestant['against']>,
): Contestant {
  return {
    id,
    suite: 'mcp',
    title: `gateway, ${what}`,
    question,
    readyPath: '/ready',
    against,
    program: gatewayProgram(id, toolShop(count, 'mcp')),
  };
}
