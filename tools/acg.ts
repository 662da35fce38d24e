#!/usr/bin/env node
/**
 * The entry of the package and of a checkout (`npm run acg -- …`): the commands of a gateway, and
 * those of developers.
 */
import { exitWith, runProgram } from '../src/cli/program.ts';
import { PACKAGE_COMMANDS } from './commands.ts';

const given = process.argv.slice(2);
// The image serves without arguments; a person who types the name alone asks what it does.
await exitWith(() => runProgram(given.length === 0 ? ['--help'] : given, PACKAGE_COMMANDS));
