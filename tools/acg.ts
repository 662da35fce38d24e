#!/usr/bin/env node
/**
 * The entry of the package and of a checkout (`npm run acg -- …`): the commands of a gateway, and
 * those of developers.
 */
import { GATEWAY_COMMANDS } from '../src/cli/commands.ts';
import { exitWith } from '../src/cli/exit-code.ts';
import { type CommandGroup, runProgram } from '../src/cli/program.ts';

const DEVELOPER_COMMANDS: CommandGroup = {
  title: 'Develop against it',
  commands: [
    {
      name: 'mandate',
      summary: 'make AP2 mandates with TEST keys',
      load: async () => (await import('./mandate/command.ts')).mandateCommand(),
    },
    {
      name: 'vectors',
      summary: 'put published test vectors of AP2 and ACP through the validators',
      load: async () => (await import('./vectors/command.ts')).vectorsCommand(),
    },
  ],
};

await exitWith(() => runProgram(process.argv.slice(2), [DEVELOPER_COMMANDS, ...GATEWAY_COMMANDS]));
