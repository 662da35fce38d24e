/** `acg vectors`: its options; `ap2.ts` and `acp.ts` do the work. */

import type { Command } from 'commander';
import { addSubcommand, defineCommandGroup } from '../../src/cli/program.ts';

export function vectorsCommand(): Command {
  const about = `Puts published test vectors through the validators, case by case. Prints a line for every case that comes out otherwise
and the counts; ends with 1 when there was one.`;
  const command = defineCommandGroup('vectors', about, 'acg vectors ap2 cases.json');
  addSubcommand(
    command,
    'ap2',
    `Presents AP2 mandates to the verifier. FILE: JSON with config (the merchant: its keys and issuers) and cases; each has a name,
a header, now, the call, and expected: accepted, or the reason of the refusal.`,
    'acg vectors ap2 cases.json',
  )
    .argument('<file>')
    .option('--redis <url>', 'remember what was used in that Redis, under names of its own, instead of in memory')
    .action(async (file: string, { redis }: { readonly redis?: string }) => {
      ended(await (await import('./ap2.ts')).vectors({ file, redis }));
    });
  addSubcommand(
    command,
    'acp',
    `Puts ACP documents through the validators of requests and answers. FILE: JSON with spec and cases; each has an id, a schema (the
name of its definition), a direction, a body, and valid: what the official schema says; tags name what is accepted of callers all
the same.`,
    'acg vectors acp cases.json',
  )
    .argument('<file>')
    .action(async (file: string) => ended(await (await import('./acp.ts')).corpusMismatches(file)));
  return command;
}

function ended(mismatches: number): void {
  process.exitCode = mismatches === 0 ? 0 : 1;
}
