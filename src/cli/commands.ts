/** The commands of the gateway, which the image carries. */

import type { CommandGroup } from './program.ts';

/** The commands, grouped by the people who run them. */
export const GATEWAY_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'Run a gateway',
    commands: [
      {
        name: 'serve',
        summary: 'run the gateway until SIGTERM',
        load: async () => (await import('./serve.ts')).serveCommand(),
      },
      {
        name: 'validate',
        summary: 'check the configuration and say what it means',
        load: async () => (await import('./validate.ts')).validateCommand(),
      },
      {
        name: 'healthcheck',
        summary: 'exit 0 when the gateway of this configuration is up',
        load: async () => (await import('./healthcheck.ts')).healthcheckCommand(),
      },
    ],
  },
  {
    title: 'Operate it',
    commands: [
      {
        name: 'receipts',
        summary: 'list the receipts of a running gateway, or show one',
        load: async () => (await import('./receipts.ts')).receiptsCommand(),
      },
      {
        name: 'events',
        summary: 'list the events of a running gateway, or follow them',
        load: async () => (await import('./events.ts')).eventsCommand(),
      },
      {
        name: 'refunds',
        summary: 'list the refunds that are due, with sums',
        load: async () => (await import('./refunds.ts')).refundsCommand(),
      },
      {
        name: 'doctor',
        summary: 'look at all that a gateway depends on, and say what to do',
        load: async () => (await import('./doctor.ts')).doctorCommand(),
      },
      {
        name: 'server-json',
        summary: 'print the document with which the MCP endpoint is published',
        load: async () => (await import('./server-json.ts')).serverJsonCommand(),
      },
      {
        name: 'reconcile',
        summary: 'rebuild lost receipts from the chain, or decide a payment',
        load: async () => (await import('./reconcile.ts')).reconcileCommand(),
      },
    ],
  },
  {
    title: 'Put it into pods',
    commands: [
      {
        name: 'inject',
        summary: 'put the gateway into the pods of Kubernetes manifests',
        load: async () => (await import('./inject.ts')).injectCommand(),
      },
      {
        name: 'injector',
        summary: 'answer admission reviews of Kubernetes, make its certificates',
        load: async () => (await import('./injector.ts')).injectorCommand(),
      },
    ],
  },
];
