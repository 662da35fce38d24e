/** All contestants, and the choice of the command line. */

import type { Contestant, Suite } from './contestant.ts';
import { a2aSdk } from './peers/a2a-sdk.ts';
import { expressJson } from './peers/express-json.ts';
import { gatewayA2a, gatewayChallenge, gatewayFree, gatewayMcp } from './peers/gateway.ts';
import { hpmRecipe } from './peers/hpm-recipe.ts';
import { hpmStreamed } from './peers/hpm-streamed.ts';
import { mcpSdk } from './peers/mcp-sdk.ts';

/** All of them, suite by suite in the order of the report. */
export const CONTESTANTS: readonly Contestant[] = [
  gatewayFree,
  hpmStreamed,
  hpmRecipe,
  gatewayChallenge,
  expressJson,
  ...gatewayMcp,
  ...mcpSdk,
  gatewayA2a,
  ...a2aSdk,
];

/**
 * The contestants that the command line selects; undefined selects all. @throws Error that names
 * the unknown ones, or when none is left
 */
export function chosen(choice: {
  readonly suites: readonly Suite[] | undefined;
  readonly only: readonly string[] | undefined;
}): readonly Contestant[] {
  const { suites, only } = choice;
  const ids = CONTESTANTS.map(({ id }) => id);
  const unknown = only?.find((id) => !ids.includes(id));
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is none of ${ids.join(', ')}`);
  const all = CONTESTANTS.filter(({ id, suite }) => (suites?.includes(suite) ?? true) && (only?.includes(id) ?? true));
  if (all.length === 0) throw new Error('--suite and --only leave no contestant');
  return all;
}
