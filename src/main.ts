#!/usr/bin/env node
/** The entry of the command line: reads the arguments and runs one command of `src/cli`. */

import { parseArgs } from 'node:util';
import { exitWith, UsageError } from './cli/exit-code.ts';

const USAGE = `acg <command> [--config FILE]

  serve        run the gateway (default)
  validate     check the configuration and say what it means
  healthcheck  exit 0 when the gateway of this configuration is up
  reconcile --from-chain [--since BLOCK|ISO8601] [--dry-run]
               write the receipts that the chain shows and a lost store forgot; without --since of the last 30 days
  reconcile --decide PAYID paid|unpaid [--transaction HASH]
               end a payment of which nothing could tell whether it was made (GET /api/receipts?uncertain=payment)
  inject -f FILE|DIRECTORY|-
               write Kubernetes manifests with the gateway in every pod that opted in; more with inject --help
  injector --options PATH --certificates DIRECTORY
               answer the admission reviews of Kubernetes: give opted-in pods the gateway; more with injector --help
  injector certificate --service NAME --namespace NAMESPACE --directory DIRECTORY
               write or renew the certificates of an injector

The configuration is --config, else AGENT_COMMERCE_CONFIG, else config.yaml.
`;

/** Commands of `tools/`, which no image carries because they make test keys. */
const DEVELOPER_COMMANDS: ReadonlySet<string> = new Set(['mandate', 'vectors']);

const RECONCILE_OPTIONS = ['from-chain', 'since', 'dry-run', 'decide', 'transaction'] as const;

/** Exit codes: 0 done, 1 failed, 64 wrong usage, 78 wrong configuration (sysexits). */
async function main(): Promise<number> {
  const first = process.argv[2] ?? '';
  if (DEVELOPER_COMMANDS.has(first))
    throw new UsageError(`${first} is a command of a checkout: npm run acg -- ${first}`);
  // These two have options of their own.
  if (first === 'inject') return (await import('./cli/inject.ts')).inject(process.argv.slice(3));
  if (first === 'injector') return (await import('./cli/injector.ts')).injector(process.argv.slice(3));
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
      'from-chain': { type: 'boolean' },
      since: { type: 'string' },
      'dry-run': { type: 'boolean' },
      decide: { type: 'string' },
      transaction: { type: 'string' },
    },
  });
  const [command = 'serve', ...rest] = positionals;
  if (values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const args = values.config === undefined ? {} : { config: values.config };
  if (rest.length > 0 && values.decide === undefined) throw new UsageError(`unexpected argument ${rest[0]}`);
  const foreign = command === 'reconcile' ? undefined : RECONCILE_OPTIONS.find((name) => values[name] !== undefined);
  if (foreign !== undefined) throw new UsageError(`--${foreign} belongs to reconcile`);
  // Loaded on demand: a configuration check needs no web server.
  switch (command) {
    case 'serve':
      await (await import('./cli/serve.ts')).serve(args);
      return 0;
    case 'validate':
      await (await import('./cli/validate.ts')).validate(args);
      return 0;
    case 'healthcheck':
      await (await import('./cli/healthcheck.ts')).healthcheck(args);
      return 0;
    case 'reconcile': {
      const { decide: payId, transaction } = values;
      if (payId !== undefined) {
        const { decide, readDecision } = await import('./cli/decide.ts');
        await decide({ ...args, decision: readDecision(payId, rest, transaction) });
        return 0;
      }
      const { since, 'from-chain': fromChain = false, 'dry-run': dryRun = false } = values;
      const wanted = { ...args, fromChain, dryRun, ...(since === undefined ? {} : { since }) };
      await (await import('./cli/reconcile.ts')).reconcile(wanted);
      return 0;
    }
    default:
      throw new UsageError(`unknown command ${command}`);
  }
}

await exitWith(main, USAGE);
