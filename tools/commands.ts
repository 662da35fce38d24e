/** The commands of the package: those of the image, and those that no image has. */

import { GATEWAY_COMMANDS } from '../src/cli/commands.ts';
import type { CommandGroup } from '../src/cli/program.ts';

const DEVELOPER_COMMANDS: CommandGroup = {
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
      name: 'wallet',
      summary: 'let an MCP host find, price and buy, within limits',
      load: async () => (await import('./wallet/command.ts')).walletCommand(),
    },
    {
      name: 'verify-receipt',
      summary: 'say what a signed receipt, offer or statement shows',
      load: async () => (await import('./verify-receipt/command.ts')).verifyReceiptCommand(),
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
      summary: 'put test vectors of AP2 and ACP through the validators',
      load: async () => (await import('./vectors/command.ts')).vectorsCommand(),
    },
  ],
};

/** Commands that do more than those of the image, which has neither keys nor rules of listings. */
const EXTENDED: CommandGroup['commands'] = [
  {
    name: 'refunds',
    summary: 'list the refunds that are due, and send them',
    load: async () => (await import('./refunds/command.ts')).refundsCommand(),
  },
  {
    name: 'doctor',
    summary: 'look at all that a gateway depends on, and say what to do',
    load: async () => (await import('./doctor/command.ts')).doctorCommand(),
  },
];

export const PACKAGE_COMMANDS: readonly CommandGroup[] = [
  DEVELOPER_COMMANDS,
  ...GATEWAY_COMMANDS.map(({ title, commands }) => ({
    title,
    commands: commands.map((command) => EXTENDED.find(({ name }) => name === command.name) ?? command),
  })),
];
