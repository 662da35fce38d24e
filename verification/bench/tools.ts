/** A resource of the gateway, and the same tool on a peer. */
export interface Tool {
  readonly id: string;
  readonly name: string;
  readonly description: string;
}

/** The schema of INPUT. Closed, as the gateway closes it, so that all servers list the same. */
export const INPUT_SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', maxLength: 64 },
    day: { type: 'string', format: 'date' },
    currency: { type: 'string', maxLength: 3, pattern: '^[A-Z]{3}$' },
  },
  required: ['city', 'day', 'currency'],
  additionalProperties: false,
} as const;

/** The called tool. */
export const CALLED = 'report-1';

/** `count` tools with one schema: report-1, report-2, ... */
export function tools(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, at) => ({
    id: toolId(at + 1),
    name: `Report ${at + 1}`,
    description: `Prices and volumes of one city on one day, edition ${at + 1}`,
  }));
}

/** The name of the last of `count` tools: an answer with it is a complete list. */
export function lastTool(count: number): string {
  return toolId(count);
}

function toolId(edition: number): string {
  return `report-${edition}`;
}
