#!/usr/bin/env node
/** The entry of the image: the commands of a gateway. */

import { GATEWAY_COMMANDS } from './cli/commands.ts';
import { exitWith, UsageError } from './cli/exit-code.ts';
import { runProgram } from './cli/program.ts';

/** Commands of `tools/`, which no image carries: they make keys for tests, or pay. */
const DEVELOPER_COMMANDS: ReadonlySet<string> = new Set(['dev', 'init', 'import', 'pay', 'mandate', 'vectors']);

await exitWith(async () => {
  const words = process.argv.slice(2);
  const first = words[0] ?? '';
  if (DEVELOPER_COMMANDS.has(first))
    throw new UsageError(
      `${first} is no command of the image: install the package (npm run acg -- ${first} in a checkout)`,
    );
  await runProgram(words, GATEWAY_COMMANDS);
});
