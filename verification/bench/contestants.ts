/** All contestants, and the choice of the command line. */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Contestant, Suite } from './contestant.ts';
import { a2aSdk } from './peers/a2a-sdk.ts';
import { expressJson } from './peers/express-json.ts';
import { gatewayA2a, gatewayChallenge, gatewayFree, gatewayMcp } from './peers/gateway.ts';
import { hpmRecipe } from './peers/hpm-recipe.ts';
import { hpmStreamed } from './peers/hpm-streamed.ts';
import { mcpSdk } from './peers/mcp-sdk.ts';
import { gatewayPassed, proxies } from './peers/passthrough.ts';

const GATEWAYS: readonly Contestant[] = [gatewayFree, gatewayChallenge, gatewayPassed, ...gatewayMcp, gatewayA2a];

/** All of them, suite by suite in the order of the report. */
export const CONTESTANTS: readonly Contestant[] = [
  gatewayFree,
  hpmStreamed,
  hpmRecipe,
  gatewayChallenge,
  expressJson,
  gatewayPassed,
  ...proxies,
  ...gatewayMcp,
  ...mcpSdk,
  gatewayA2a,
  ...a2aSdk,
];

/**
 * Each gateway beside an earlier one, in one run: its ratio is then to that one.
 * @param entry of the earlier gateway, its src/main.ts or its bundle
 */
function besideEarlier(entry: string): readonly Contestant[] {
  return GATEWAYS.flatMap((now) => {
    const earlier: Contestant = {
      id: `${now.id}-before`,
      suite: now.suite,
      title: `${now.title}, before`,
      question: now.question,
      readyPath: now.readyPath,
      async program(surroundings) {
        const folder = join(surroundings.folder, 'before');
        await mkdir(folder, { recursive: true });
        const { args, env } = await now.program({ ...surroundings, folder });
        return { args: [entry, ...args.slice(1)], env };
      },
    };
    return [{ ...now, against: { id: earlier.id } }, earlier];
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
