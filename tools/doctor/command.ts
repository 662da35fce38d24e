/** `acg doctor` of the package: the image has none of the rules of catalogues. */

import type { Command } from 'commander';
import { type DoctorArgs, doctor, doctorCommand as imageCommand } from '../../src/cli/doctor.ts';

export function doctorCommand(): Command {
  return imageCommand()
    .option('--catalogues', 'also which listing would refuse what; the gateway has to run')
    .action(async ({ catalogues, ...args }: DoctorArgs & { readonly catalogues?: true }) =>
      doctor(args, catalogues === true ? (await import('./catalogues.ts')).checkCatalogues : undefined),
    );
}
