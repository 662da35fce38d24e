/** A resource of the gateway, and the same tool on a peer. */
export interface Tool {
  readonly id: string;
  readonly name: string;
  readonly description: string;
}

/**
 * What INPUT is. Closed, as the gateway would close it: the lists of all servers are then the same.
 */
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

/** The tool that calls ask for. */
export const CALLED = 'report-1';

/** `count` tools with one schema: report-1, report-2, ... */
export function tools(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, at) => ({
    id: toolId(at + 1),
    name: `Report ${at + 1}`,
    description: `Prices and volumes of one city on one day, edition ${at + 1}`,
  }));
}

/** The name of the last of `count` tools: an answer that holds it is a whole list. */
export function lastTool(count: number): string {
  return toolId(count);
}

function toolId(edition: number): string {
  return `report-${edition}`;
}
