/** `acg validate`: reads the configuration as the start does, and prints what it means. */

import type { Command } from 'commander';
import { headWarnings } from '../app/head-room.ts';
import { aligned, routeLines } from '../app/route-table.ts';
import { warningsOf } from '../app/route-warnings.ts';
import { configuredEntries, type GatewayConfig } from '../config/document/config.ts';
import type { ConfigSource } from '../config/load.ts';
import { adaptersSummary, mandatesSummary, storeLossSummary } from '../config/warnings.ts';
import { type Catalogue, compileCatalogue } from '../resources/catalogue.ts';
import { priceInWords } from '../resources/listing.ts';
import { drainSeconds } from '../sidecar/lifecycle.ts';
import { checkedStart } from './checked-start.ts';
import { checkBackend } from './doctor/backend.ts';
import { runChecks } from './doctor/check.ts';
import { checkSecondNames } from './doctor/second-names.ts';
import { checkSoldPaths } from './doctor/sold-paths.ts';
import { CONFIG_OPTION, defineCommand } from './program.ts';

/** Megabytes that a passed exchange buffers while its reader has stopped; measured. */
const RELAYED_MB = 0.5;

export function validateCommand(): Command {
  const about = 'Checks the configuration as a start does and prints what is sold, at which price; warnings on stderr.';
  return defineCommand('validate', about, 'acg validate --config gateway.yaml')
    .option(...CONFIG_OPTION)
    .option('--verbose', 'also what else it means: mandates, drain, the account that needs gas, the table of routes')
    .option('--probe', 'also asks the backend, as doctor does; without it nothing is opened')
    .action((args) => validate(args));
}

async function validate(args: {
  readonly config?: string;
  readonly verbose?: boolean;
  readonly probe?: boolean;
}): Promise<void> {
  const source: ConfigSource = { path: args.config, env: process.env };
  const checked = checkedStart(source, compileCatalogue);
  const { also: catalogue } = checked;
  const { config } = checked.loaded;
  const priced = config.resources.filter((resource) => resource.pricing.type === 'fixed').length;
  const lines = [
    `valid: ${config.resources.length} resources, ${priced} of them paid; ${moneyOf(config)}; store ${config.storage.engine.kind}`,
    ...priceList(config),
    ...(args.verbose === true ? await details(checked) : []),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  const warnings = [...warningsOf(config), ...headWarnings(config, catalogue)];
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  if (args.probe === true) await probe(config, catalogue);
}

/** Networks in the order of the entries, each once. */
function moneyOf(config: GatewayConfig): string {
  const places = configuredEntries(config).map(
    ({ x402: { network, mode, offered } }) => `${network} (${mode}${offered ? '' : ', not offered'})`,
  );
  return places.length === 0 ? 'no payments' : `x402 on ${[...new Set(places)].join(', ')}`;
}

/** The price list: each resource with its price and channels. */
function priceList({ resources, backend: { pathPrefix } }: GatewayConfig): readonly string[] {
  if (resources.length === 0) return [];
  return aligned([
    ['id', 'method', 'path', 'price', 'channels'],
    ...resources.map(({ id, backend: { method, path }, pricing, exposedVia }) => [
      id,
      method,
      path.slice(pathPrefix.length),
      priceInWords(pricing),
      exposedVia.join(', '),
    ]),
  ]);
}

async function details({
  loaded: { config },
  drain,
  also: catalogue,
}: ReturnType<typeof checkedStart<Catalogue>>): Promise<readonly string[]> {
  const { backend, limits } = config;
  const seconds = drainSeconds(drain);
  return [
    mandatesSummary(config),
    `adapters: ${adaptersSummary(config)}`,
    `payments that the store loses: ${storeLossSummary(config)}`,
    ...(backend.passthrough === undefined
      ? []
      : [
          `unread bodies that pass: at most ${Math.ceil((limits.maxPassthrough + limits.maxUpgrades) * RELAYED_MB)} MB`,
        ]),
    `drain: at most ${seconds} s, on the pod agent-commerce.dev/drain-seconds: "${seconds}"`,
    ...(await relayerLines(config)),
    ...routeLines(config, catalogue),
  ];
}

/** Findings of `acg doctor` at the backend. */
async function probe(config: GatewayConfig, catalogue: Catalogue): Promise<void> {
  const checks = [
    ...checkBackend(config.backend),
    ...checkSoldPaths(config, catalogue),
    ...checkSecondNames(config, catalogue),
  ];
  for (const { status, check, message, remedy } of await runChecks(checks, () => undefined)) {
    process.stdout.write(`${status} ${check}: ${remedy === undefined ? message : `${message}; ${remedy}`}\n`);
    if (status === 'FAIL') process.exitCode = 1;
  }
}

/** The accounts that need gas. */
async function relayerLines(config: GatewayConfig): Promise<readonly string[]> {
  const lines = configuredEntries(config).map(async ({ x402: { facilitator, network } }) => {
    if (facilitator.mode !== 'local') return [];
    const { prepareKey } = await import('../payments/x402/evm/account.ts');
    const { address } = await prepareKey(facilitator.privateKey);
    return [`relayer account, which needs gas${config.alternatives.length > 0 ? ` on ${network}` : ''}: ${address}`];
  });
  return (await Promise.all(lines)).flat();
}
