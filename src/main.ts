#!/usr/bin/env node
/** The entry of the image: the commands of a gateway. */

import { GATEWAY_COMMANDS } from './cli/commands.ts';
import { exitWith, runProgram, UsageError } from './cli/program.ts';

/** Commands of `tools/`, which no image carries. */
const OF_THE_PACKAGE = /^(?:dev|init|import|pay|wallet|mandate|vectors|refunds (?:pay|record)|doctor --catalogues)$/;

await exitWith(async () => {
  const words = process.argv.slice(2);
  const named = [words.slice(0, 1), words.slice(0, 2)].map((some) => some.join(' '));
  const command = named.find((words) => OF_THE_PACKAGE.test(words));
  if (command !== undefined)
    throw new UsageError(
      `${command} is no command of the image: install the package (npm run acg -- ${command} in a checkout)`,
    );
  await runProgram(words, GATEWAY_COMMANDS);
});
