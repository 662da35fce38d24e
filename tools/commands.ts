/** The commands for developers, which the package has and no image. */

import type { CommandGroup } from '../src/cli/program.ts';

export const DEVELOPER_COMMANDS: CommandGroup = {
  title: 'Develop against it',
  commands: [
    {
      name: 'init',
      summary: 'write a first configuration, with comments',
      load: async () => (await import('./init/command.ts')).initCommand(),
    },
    {
      name: 'dev',
      summary: 'run a configuration in a local world, with test money',
      load: async () => (await import('./dev/command.ts')).devCommand(),
    },
    {
      name: 'pay',
      summary: 'call a URL and pay what it asks for (x402)',
      load: async () => (await import('./pay/command.ts')).payCommand(),
    },
    {
      name: 'import',
      summary: 'make resources of an OpenAPI document',
      load: async () => (await import('./import/command.ts')).importCommand(),
    },
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
