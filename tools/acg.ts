#!/usr/bin/env node
/**
 * The entry of the package and of a checkout (`npm run acg -- …`): the commands of a gateway, and
 * those of developers.
 */
import { exitWith } from '../src/cli/exit-code.ts';
import { runProgram } from '../src/cli/program.ts';
import { PACKAGE_COMMANDS } from './commands.ts';

await exitWith(() => runProgram(process.argv.slice(2), PACKAGE_COMMANDS));
