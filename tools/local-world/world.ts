/**
 * The local world: a chain with a token and a funded buyer, and a gateway whose configuration is
 * made local. What `acg dev` and `make run` are.
 */

import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processSettings } from '../../src/cli/checked-start.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import type { Environment } from '../../src/config/document/parse.ts';
import { parseConfig } from '../../src/config/load.ts';
import { LOCAL_CHAIN_ID, LOCAL_TOKEN, TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { ConfigError, type ConfigProblem, checkAll } from '../../src/problems/problem.ts';
import { type Chain, startChain } from './chain.ts';
import {
  type GatewayProcess,
  type LogLine,
  NotStartedError,
  readLogLine,
  startGatewayProcess,
} from './gateway-process.ts';
import {
  LOCAL_PAYEE,
  type LocalParts,
  localEnvironment,
  localized,
  localUrl,
  ownMistakes,
  ownSettings,
} from './localized.ts';
import { freePort, type MovedBy, requireFree, WORLD_PORTS, type WorldPorts } from './ports.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/** What the TEST buyer owns, base units: a million of the token. */
const TEST_FUNDS_UNITS = 1_000_000_000_000n;
/** For the check of a configuration before anything runs. */
const NO_CHAIN: LocalParts['chain'] = {
  rpcUrl: 'http://127.0.0.1:1',
  chainId: LOCAL_CHAIN_ID,
  token: LOCAL_TOKEN,
  relayerKey: TEST_BUYER.key,
};

/** How a world is opened. */
export interface WorldOptions {
  /** The program that serves. */
  readonly entry: string;
  /** Variables for the gateway. */
  readonly env: Environment;
  /** Those that are not given are of the configuration, else the usual ones; 0: any free one. */
  readonly ports: { readonly [Name in keyof WorldPorts]?: number | undefined };
  readonly movedBy: MovedBy;
  /** A folder for the database, which then stays; else it goes away with the world. */
  readonly dataDirectory?: string | undefined;
  /** Gets each line that the gateway prints. */
  readonly onLine: (line: string) => void;
}

/** What runs. */
export interface LocalWorld {
  readonly chain: Chain;
  /** The one that runs now. */
  readonly gateway: () => WorldGateway;
  /** Resolves to one line when a part of the world ends by itself. */
  readonly failed: Promise<string>;
  /**
   * Runs the gateway with another configuration. One that is refused, or that does not start,
   * changes nothing. @returns whether it differs from the one before
   * @throws ConfigError, Error in one line
   */
  replace(document: unknown): Promise<boolean>;
  /** Ends everything, last started first. */
  stop(): Promise<void>;
}

/** A gateway of the world, and how it is used. */
interface WorldGateway {
  readonly baseUrl: string;
  readonly managementUrl: string;
  readonly adminToken: string;
  readonly config: GatewayConfig;
  readonly configPath: string;
}

/** A configuration that was accepted, with its local parts. */
interface Plan extends Omit<WorldGateway, 'configPath'> {
  readonly ports: WorldPorts;
  readonly databasePath: string;
  /** The whole of it, as JSON. */
  readonly text: string;
}

/** Opens a world. @throws ConfigError, Error in one line; what had started is ended again */
export async function openLocalWorld(document: unknown, options: WorldOptions): Promise<LocalWorld> {
  const { entry, onLine, movedBy } = options;
  const env = localEnvironment(options.env);
  processSettings(env);
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-world-');
  const configPath = join(directory, 'gateway.json');
  const plan = await planner(options, env, directory);
  let current = plan(document, NO_CHAIN);
  await requireFree(current.ports, movedBy);

  const chain = ends.adopt(await startChain(current.ports.rpc), ({ stop }) => stop());
  await chain.fundGas(TEST_BUYER.address);
  // For the refunds that it sends.
  await chain.fundGas(LOCAL_PAYEE);
  await chain.mint(TEST_BUYER.address, TEST_FUNDS_UNITS);
  if (options.dataDirectory !== undefined) await mkdir(options.dataDirectory, { recursive: true });
  await forgetPayments(current.databasePath);

  const failure = Promise.withResolvers<string>();
  let expected: GatewayProcess | undefined;
  const launch = async ({ text, baseUrl, databasePath }: Plan): Promise<GatewayProcess> => {
    await writeFile(configPath, text, { mode: 0o600 });
    let isStarting = true;
    const take = (line: string): void => {
      const entry = readLogLine(line);
      // Why a start failed is told by its error.
      if (isStarting && (entry === undefined || entry['msg'] === 'not started')) return;
      onLine(line);
      if (entry !== undefined && isFullDisk(entry)) failure.resolve(`the disk is full: ${databasePath}`);
    };
    const gateway = await startGatewayProcess({ entry, configPath, baseUrl, env, onLine: take }).catch(inOneLine);
    isStarting = false;
    void gateway.ended.then(({ code, signal }) => {
      if (gateway === expected) failure.resolve(`the gateway ended by itself (${signal ?? `exit code ${code}`})`);
    });
    return gateway;
  };
  ends.defer(async () => {
    const running = expected;
    expected = undefined;
    await running?.stop();
  });
  current = plan(document, chain);
  expected = await launch(current);
  let stopping = false;
  void chain.ended.then(() => {
    if (!stopping) failure.resolve('the chain ended by itself');
  });

  const started = ends.move();
  return {
    chain,
    failed: failure.promise,
    gateway: () => ({ ...current, configPath }),
    async replace(next) {
      const planned = plan(next, chain);
      if (planned.text === current.text) return false;
      await requireFree(planned.ports, movedBy, current.ports);
      const before = expected;
      expected = undefined;
      await before?.stop();
      try {
        expected = await launch(planned);
        current = planned;
      } catch (error) {
        expected = await launch(current).catch((again: Error) => {
          failure.resolve(again.message);
          return undefined;
        });
        throw error;
      }
      return true;
    },
    async stop() {
      stopping = true;
      await started.disposeAsync();
    },
  };
}

/** Makes plans that differ in their document alone: secrets, database, and ports for 0 stay. */
async function planner(options: WorldOptions, env: Environment, directory: string) {
  const anyFree = { agents: await freePort(), management: await freePort(), rpc: await freePort() };
  const portFor = (name: keyof WorldPorts, configured?: number): number => {
    const port = options.ports[name] ?? configured ?? WORLD_PORTS[name];
    return port === 0 ? anyFree[name] : port;
  };
  const secrets = { adminToken: randomBytes(24).toString('base64url'), sealingKey: randomBytes(32).toString('base64') };
  let databasePath: string | undefined;
  return (document: unknown, chain: LocalParts['chain']): Plan => {
    const own = ownSettings(document, options.env);
    const ports: WorldPorts = {
      agents: portFor('agents', own.port),
      management: portFor('management', own.managementPort),
      rpc: portFor('rpc'),
    };
    const adminToken = own.adminToken ?? secrets.adminToken;
    // Another world with the same folder has another port.
    databasePath ??= join(options.dataDirectory ?? directory, `world-${ports.agents}.db`);
    const payTo = own.payTo ?? LOCAL_PAYEE;
    const parts = { chain, ports, adminToken, payTo, databasePath, sealingKey: secrets.sealingKey };
    const local = localized(document, parts);
    const text = JSON.stringify(local, null, 2);
    return {
      ports,
      adminToken,
      databasePath,
      text,
      baseUrl: localUrl(ports.agents),
      managementUrl: localUrl(ports.management),
      config: accepted(text, env, ownMistakes(document, local, options.env)),
    };
  };
}

/**
 * `mistakes`: of the document that the text is made from.
 * @throws ConfigError without places: they are of a text that this world makes, and no user sees
 */
function accepted(text: string, env: Environment, mistakes: readonly ConfigProblem[]): GatewayConfig {
  const own = (): void => {
    if (mistakes.length > 0) throw new ConfigError(mistakes);
  };
  try {
    return checkAll(() => parseConfig(text, env), own)[0];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Of two at one path the last stays: that of the document.
    const problems = error.problems.map(({ path, message }) => [path, { path, message }] as const);
    throw new ConfigError([...new Map(problems).values()]);
  }
}

/** The chain starts new each time, so the payments of the last run lie on a chain that is gone. */
async function forgetPayments(databasePath: string): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(`${databasePath}${end}`, { force: true });
}

/** The gateway waits for room and answers 503; a developer has to make it. */
function isFullDisk({ component, status, cause }: LogLine): boolean {
  return component === 'sqlite' && status === 'fail' && String(cause).includes('disk is full');
}

function inOneLine(error: unknown): never {
  if (!(error instanceof NotStartedError)) throw error;
  throw new Error(error.fatal === undefined ? error.message : `The gateway did not start: ${error.fatal}`);
}
