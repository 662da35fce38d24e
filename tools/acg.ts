#!/usr/bin/env node
/**
 * `npm run acg -- …` in a working copy: the commands for developers of agents, and all of the
 * gateway.
 */
import { exitWith } from '../src/cli/exit-code.ts';

const USAGE = `acg <command>, for developers:

  mandate      AP2 mandates with TEST keys (acg mandate --help)
  vectors ap2 FILE [--redis URL]
               present the cases of a file of AP2 vectors to the verifier (acg vectors --help)
  vectors acp FILE
               put the cases of a file of ACP documents through the validators (acg vectors --help)
`;

const [command, ...args] = process.argv.slice(2);
// These commands parse their own options.
if (command === 'mandate') await exitWith(async () => (await import('./mandate/command.ts')).mandate(args), USAGE);
else if (command === 'vectors')
  await exitWith(async () => (await import('./vectors/command.ts')).vectorsCommand(args), USAGE);
else {
  if (command === '--help' || command === '-h') process.stdout.write(`${USAGE}\nand of the gateway: `);
  await import('../src/main.ts');
}
