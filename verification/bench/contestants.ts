/** All contestants, and the choice of the command line. */

import { type Contestant, NotAvailable, type Suite } from './contestant.ts';
import { a2aSdk } from './peers/a2a-sdk.ts';
import { gatewayA2a, gatewayBody, gatewayChallenge, gatewayFree, gatewayMcp, gatewayPaid } from './peers/gateway.ts';
import { hpmRecipe, recipeAlone, recipeBody } from './peers/hpm-recipe.ts';
import { devlab, officialChallenge, officialPaid } from './peers/installed.ts';
import { mcpSdk } from './peers/mcp-sdk.ts';
import { nginx } from './peers/nginx.ts';
import { gatewayPassed, hpmLogged } from './peers/passthrough.ts';

/** All of them, suite by suite in the order of the report. */
export const CONTESTANTS: readonly Contestant[] = [
  ...gatewayFree,
  hpmRecipe,
  recipeAlone,
  nginx,
  devlab,
  gatewayChallenge,
  officialChallenge,
  gatewayBody,
  recipeBody,
  ...gatewayPaid,
  ...officialPaid,
  gatewayPassed,
  hpmLogged,
  ...gatewayMcp,
  ...mcpSdk,
  gatewayA2a,
  a2aSdk,
];

/** The id of the earlier gateway beside a contestant. */
export function earlierOf(id: string): string {
  return `${id}-before`;
}

/**
 * Each gateway beside an earlier one, in one run.
 * @param entry of the earlier gateway, its src/main.ts or its bundle
 */
function besideEarlier(entry: string): readonly Contestant[] {
  return CONTESTANTS.filter(({ own }) => own === true).flatMap((now) => {
    const earlier: Contestant = {
      ...now,
      id: earlierOf(now.id),
      title: `${now.title}, before`,
      process: earlierOf(now.process ?? now.id),
      program: (surroundings) =>
        now.program({
          ...surroundings,
          gatewayEntry: async () => entry,
          async noopEntry() {
            throw new NotAvailable('an earlier bundle has no rail that settles nothing');
          },
        }),
    };
    return [now, earlier];
  });
}

/**
 * The contestants that the command line selects; undefined selects all. @throws Error that names
 * the unknown ones, or when none is left
 */
export function chosen(choice: {
  readonly suites: readonly Suite[] | undefined;
  readonly only: readonly string[] | undefined;
  /** Entry of an earlier gateway to compare with, instead of the peers. */
  readonly before?: string | undefined;
}): readonly Contestant[] {
  const { suites, only, before } = choice;
  const contestants = before === undefined ? CONTESTANTS : besideEarlier(before);
  const ids = contestants.map(({ id }) => id);
  const unknown = only?.find((id) => !ids.includes(id));
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is none of ${ids.join(', ')}`);
  const all = contestants.filter(({ id, suite }) => (suites?.includes(suite) ?? true) && (only?.includes(id) ?? true));
  if (all.length === 0) throw new Error('--suite and --only leave no contestant');
  return all;
}
