#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { UsageError } from './cli/usage-error.ts';
import { ConfigError } from './problems/problem.ts';

const USAGE = `acg <command> [--config FILE]

  serve        run the gateway (default)
  validate     check the configuration and say what it means
  healthcheck  exit 0 when the gateway of this configuration is up
  mandate      AP2 mandates with TEST keys, for developers of agents (acg mandate --help)
  vectors ap2 FILE [--redis URL]
               present the cases of a file of AP2 vectors to the verifier (acg vectors --help)
  vectors acp FILE
               put the cases of a file of ACP documents through the validators (acg vectors --help)
  reconcile --from-chain [--since BLOCK|ISO8601] [--dry-run]
               write the receipts that the chain shows and a lost store forgot; without --since of the last 30 days
  reconcile --decide PAYID paid|unpaid [--transaction HASH]
               end a payment of which nothing could tell whether it was made (GET /api/receipts?uncertain=payment)

The configuration is --config, else AGENT_COMMERCE_CONFIG, else config.yaml.
`;

const RECONCILE_OPTIONS = ['from-chain', 'since', 'dry-run', 'decide', 'transaction'] as const;

/** Exit codes: 0 done, 1 failed, 64 wrong usage, 78 wrong configuration (sysexits). */
async function main(): Promise<number> {
  // They have options of their own.
  if (process.argv[2] === 'mandate') return (await import('./cli/mandate/command.ts')).mandate(process.argv.slice(3));
  if (process.argv[2] === 'vectors')
    return (await import('./cli/vectors/command.ts')).vectorsCommand(process.argv.slice(3));
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
  if (rest.length > 0 && values.decide === undefined) return misused(`unexpected argument ${rest[0]}`);
  const foreign = command === 'reconcile' ? undefined : RECONCILE_OPTIONS.find((name) => values[name] !== undefined);
  if (foreign !== undefined) return misused(`--${foreign} belongs to reconcile`);
  // Loaded on demand: a configuration check need not start a web server.
  switch (command) {
    case 'serve':
      await (await import('./cli/serve.ts')).serve(args);
      return 0;
    case 'validate':
      (await import('./cli/validate.ts')).validate(args);
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
      return misused(`unknown command ${command}`);
  }
}

function misused(why: string): number {
  process.stderr.write(`${why}\n\n${USAGE}`);
  return 64;
}

try {
  process.exitCode = await main();
} catch (thrown) {
  if (thrown instanceof ConfigError) {
    process.stderr.write(`${thrown.message}\n`);
    process.exitCode = 78;
  } else if (thrown instanceof UsageError) {
    process.exitCode = misused(thrown.message);
  } else if (thrown instanceof TypeError && 'code' in thrown && String(thrown.code).startsWith('ERR_PARSE_ARGS')) {
    process.exitCode = misused(thrown.message);
  } else {
    process.stderr.write(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`);
    process.exitCode = 1;
  }
}
