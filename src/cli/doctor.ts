/** `acg doctor`: looks at everything that a gateway depends on, and says what to do. */

import type { Command } from 'commander';
import { type ConfiguredEntry, configuredEntries, type GatewayConfig } from '../config/document/config.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { checkBackend } from './doctor/backend.ts';
import { checkCertificate } from './doctor/certificate.ts';
import { type Check, type NamedFinding, type Part, runChecks, STATUSES, skipped } from './doctor/check.ts';
import { checkClock } from './doctor/clock.ts';
import { checkConfiguration } from './doctor/configuration.ts';
import { checkFacilitators } from './doctor/facilitators.ts';
import { runningGateway } from './doctor/running-gateway.ts';
import { checkSecondNames } from './doctor/second-names.ts';
import { checkSoldPaths } from './doctor/sold-paths.ts';
import { type Output, printList, type Shape } from './output.ts';
import { CONFIG_OPTION, defineCommand } from './program.ts';

/** Erases the line of a terminal. */
const ERASE = '\r\u001b[K';
/** Characters of the progress line: a line that wraps cannot be erased. */
const PROGRESS_WIDTH = 79;
const STYLES = { PASS: 'green', WARN: 'yellow', FAIL: 'red', SKIP: 'dim' } as const;

export interface DoctorArgs {
  readonly config?: string;
  readonly json?: boolean;
}

/** Makes checks of the gateway that runs here, which then has to run. */
type MoreChecks = (config: GatewayConfig, catalogue: Catalogue) => readonly Check[];

export function doctorCommand(): Command {
  const about = `Looks at the configuration, store, backend, chain, facilitator, clock and certificate, and at the gateway that runs
here. It sells and pays nothing, and says what to do about each fault. Ends with 1 when something fails.`;
  return defineCommand('doctor', about, 'acg doctor --config gateway.yaml')
    .option(...CONFIG_OPTION)
    .option('--json', 'JSON on a terminal too, as a pipe gets it')
    .action((args) => doctor(args));
}

/** Prints what it finds. `more`: checks that the command line asks for. */
export async function doctor(args: DoctorArgs, more?: MoreChecks): Promise<void> {
  const findings = await diagnose(args.config, process.env, progressOn(process.stderr), more);
  const count = (wanted: NamedFinding['status']) => findings.filter(({ status }) => status === wanted).length;
  printList({ rows: findings, document: { ok: count('FAIL') === 0, findings }, none: '' }, SHAPE, args);
  process.stderr.write(`${STATUSES.map((status) => `${count(status)} ${status}`).join(', ')}\n`);
  if (count('FAIL') > 0) process.exitCode = 1;
}

/** All findings, without configured secrets. `progress`: gets the names of running checks. */
export async function diagnose(
  path: string | undefined,
  env: NodeJS.ProcessEnv,
  progress: (names: readonly string[]) => void = () => undefined,
  more?: MoreChecks,
): Promise<readonly NamedFinding[]> {
  const { accepted, findings } = checkConfiguration(path, env);
  if (accepted === undefined) return findings;
  const { config, catalogue } = accepted;
  const parts = await partsOf(config, catalogue, more);
  const checks = parts.flatMap((part) => part.checks);
  try {
    return [...findings, ...(await runChecks(checks, progress))].map(maskerOf(config.secrets));
  } finally {
    await Promise.all(parts.map(({ close }) => close?.()));
  }
}

/** Each part is loaded where the configuration has it: Redis and chain bring large libraries. */
async function partsOf(
  config: GatewayConfig,
  catalogue: Catalogue,
  more: MoreChecks | undefined,
): Promise<readonly Part[]> {
  const { storage, merchant, backend } = config;
  const { engine } = storage;
  const entries = configuredEntries(config);
  const modes = entries.map(({ x402 }) => x402.mode);
  const mode = modes.find((one) => one !== 'local') ?? modes[0];
  const running = runningGateway(config, more !== undefined);
  const store = async (): Promise<Part> => {
    if (engine.kind === 'redis') return (await import('./doctor/redis.ts')).checkRedis(engine, merchant.id, mode);
    const { checkSqlite } = await import('./doctor/sqlite.ts');
    return { checks: engine.kind === 'sqlite' ? checkSqlite(engine.path, mode, running.isServed) : [] };
  };
  return [
    await store(),
    {
      checks: [...checkBackend(backend), ...checkSoldPaths(config, catalogue), ...checkSecondNames(config, catalogue)],
    },
    ...(await Promise.all(entries.map((entry) => paymentParts(entry, labelOf(entry, entries))))).flat(),
    { checks: [running.check, checkCertificate(merchant.publicBaseUrl), ...(more?.(config, catalogue) ?? [])] },
  ];
}

/** Behind the names of checks: nothing for one entry, else its network, and if needed the asset. */
function labelOf({ x402: { network, asset } }: ConfiguredEntry, entries: readonly ConfiguredEntry[]): string {
  if (entries.length === 1) return '';
  const isAlone = entries.filter(({ x402 }) => x402.network === network).length === 1;
  return ` ${network}${isAlone ? '' : ` ${asset}`}`;
}

async function paymentParts(entry: ConfiguredEntry, label: string): Promise<readonly Part[]> {
  const { facilitator, rpcUrls, mode } = entry.x402;
  const endpoints = facilitator.mode === 'remote' ? [facilitator, ...facilitator.fallbacks] : [];
  const peers = [...rpcUrls, ...endpoints.map(({ url }) => `${url}/supported`)];
  const chain = rpcUrls.length === 0 ? undefined : (await import('./doctor/chain.ts')).checkChain(entry);
  // A local chain makes blocks of any time.
  const blocks = chain === undefined || mode === 'local' ? {} : { newestBlockMs: chain.newestBlockMs };
  const parts: readonly Part[] = [
    chain ?? withoutNode(entry),
    {
      checks: [
        ...(endpoints.length === 0 ? [] : [checkFacilitators(endpoints, entry)]),
        checkClock({ peers, ...blocks }),
      ],
    },
  ];
  return parts.map((part) => labelled(part, label));
}

function labelled({ checks, ...part }: Part, label: string): Part {
  const named = checks.map((check): Check => {
    const needs = check.needs?.map((name) => `${name}${label}`);
    return { name: `${check.name}${label}`, ...(needs === undefined ? {} : { needs }), run: () => check.run() };
  });
  return { ...part, checks: named };
}

function withoutNode({ at }: ConfiguredEntry): Part {
  const run = async () => skipped(`${at}.rpcUrl is missing: payments are taken by the word of the facilitator`);
  return { checks: [{ name: 'chain node', run }] };
}

/** Peers may quote what we sent; the longest first, because one secret may begin with another. */
function maskerOf(secrets: readonly string[]): (finding: NamedFinding) => NamedFinding {
  const longest = secrets.toSorted((one, other) => other.length - one.length);
  const masked = (text: string) => longest.reduce((safe, secret) => safe.replaceAll(secret, '[secret]'), text);
  return ({ message, remedy, ...finding }) => ({
    ...finding,
    message: masked(message),
    ...(remedy === undefined ? {} : { remedy: masked(remedy) }),
  });
}

/** One line of a terminal that says what is still looked at; nothing anywhere else. */
function progressOn(out: Output): (names: readonly string[]) => void {
  if (out.isTTY !== true) return () => undefined;
  return (names) => {
    const line = names.length === 0 ? '' : `looking at ${names.join(', ')}`;
    out.write(`${ERASE}${line.slice(0, PROGRESS_WIDTH)}`);
  };
}

const SHAPE: Shape<NamedFinding> = {
  table: [
    { title: 'STATUS', value: ({ status }) => status, style: ({ status }) => STYLES[status] },
    { title: 'CHECK', value: ({ check }) => check },
    { title: 'FOUND', value: ({ message, remedy }) => (remedy === undefined ? message : `${message}; ${remedy}`) },
  ],
  csv: {},
};
