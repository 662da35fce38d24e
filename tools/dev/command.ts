/** `acg dev`: a local world around a merchant's own service, run again when its file changes. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { styleText } from 'node:util';
import { type Command, InvalidArgumentError } from 'commander';
import { defineCommand, repeated, UsageError } from '../../src/cli/program.ts';
import { configPath, parseConfigText, readConfigFile } from '../../src/config/document/parse.ts';
import { type ConfigSource, checkLoaded } from '../../src/config/load.ts';
import { readSources, watchDirectories } from '../../src/config/reload.ts';
import { soldOperations } from '../init/operation.ts';
import { readServiceUrl } from '../init/service-url.ts';
import { leftOut } from '../local-world/localized.ts';
import type { MovedBy } from '../local-world/ports.ts';
import { runUntilStopped } from '../local-world/session.ts';
import { type LocalWorld, openLocalWorld } from '../local-world/world.ts';
import { introduction } from './introduction.ts';
import { readableLine } from './log-lines.ts';
import { sampleConfig, startSampleMerchant } from './sample-merchant.ts';

interface DevOptions {
  readonly config?: string;
  readonly backend?: string;
  readonly sell?: readonly string[];
  readonly price: string;
  readonly port?: number;
  readonly managementPort?: number;
  readonly rpcPort?: number;
  readonly data?: string;
  readonly json?: true;
}

const MOVED_BY: MovedBy = {
  agents: 'Use --port for another one.',
  management: 'Use --management-port for another one.',
  rpc: 'Use --rpc-port for another one.',
};

export function devCommand(): Command {
  const about = `Runs your configuration in a local world until Ctrl-C: a chain with test money, a TEST buyer, the gateway before your service. What
needs the real world is replaced; a change of the file starts the gateway anew. Without a file it sells what --sell names, else a sample.`;
  return defineCommand('dev', about, 'acg dev --config config.yaml')
    .option('-c, --config <file>', 'else AGENT_COMMERCE_CONFIG, config.yaml, a sample')
    .option('--backend <url>', 'your service, where there is no file')
    .option('--sell <operation>', "such as 'GET /search?q=socks'; may be repeated", repeated)
    .option('--price <amount>', 'of each, or free', '0.01')
    .option('--port <number>', 'else of the configuration, else 8402', portNumber)
    .option('--management-port <number>', 'else of the configuration, else 8403', portNumber)
    .option('--rpc-port <number>', 'of the chain, else 8545', portNumber)
    .option('--data <folder>', 'keeps the database; else it ends with the world')
    .option('--json', 'the log as the gateway writes it, on stdout')
    .action((options: DevOptions) => runUntilStopped(() => open(options)));
}

function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new InvalidArgumentError('It must be a port, 0 to 65535.');
}

async function open(options: DevOptions) {
  await using ends = new AsyncDisposableStack();
  const source = sourceOf(options);
  const document = source === undefined ? (ofOperations(options) ?? (await sample(ends))) : read(source);
  const isRaw = options.json === true;
  const colour = !isRaw && process.stdout.isTTY;
  let world: LocalWorld | undefined;
  const onLine = (line: string): void => {
    const shown = isRaw ? line : readableLine(line, { colour, sold: world?.gateway().config });
    if (shown !== undefined) process.stdout.write(`${shown}\n`);
  };
  world = ends.adopt(
    await placed(source, () =>
      openLocalWorld(document, {
        entry: process.argv[1] ?? '',
        env: process.env,
        ports: { agents: options.port, management: options.managementPort, rpc: options.rpcPort },
        movedBy: MOVED_BY,
        dataDirectory: options.data === undefined ? undefined : resolve(options.data),
        onLine,
      }),
    ),
    ({ stop }) => stop(),
  );
  const note = (text: string): void => void (isRaw ? process.stderr : process.stdout).write(`${text}\n`);
  const file = pathOf(source ?? { env: process.env });
  const introduced = { file: existsSync(file) ? file : undefined, isRead: source !== undefined, colour };
  note(await introduction(world, { ...introduced, unused: leftOut(document) }));
  if (source !== undefined) ends.defer(follow(source, world, { note, colour }));
  const opened = ends.move();
  return { failed: world.failed, stop: () => opened.disposeAsync() };
}

/** Undefined where there is none: then a sample is sold. */
function sourceOf({ config, backend, sell }: DevOptions): ConfigSource | undefined {
  if (backend !== undefined || sell !== undefined) {
    if (config === undefined) return undefined;
    throw new UsageError('--config has what --backend and --sell would say; leave one of them out');
  }
  const source = { path: config, env: process.env };
  return existsSync(pathOf(source)) || config !== undefined || process.env['AGENT_COMMERCE_CONFIG']
    ? source
    : undefined;
}

function pathOf({ path, env }: ConfigSource): string {
  return configPath(path, env);
}

/** @throws ConfigError */
function read(source: ConfigSource): unknown {
  return parseConfigText(readConfigFile(pathOf(source)));
}

/**
 * The world checks a text that it makes; what it refuses gets its place in the developer's file.
 */
async function placed<Result>(source: ConfigSource | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (source === undefined) throw error;
    return checkLoaded(source, () => {
      throw error;
    });
  }
}

/** A configuration of the operations that the command line names. @throws UsageError */
function ofOperations({ backend, sell, price }: DevOptions): object | undefined {
  if (backend === undefined && sell === undefined) return undefined;
  if (backend === undefined || sell === undefined)
    throw new UsageError(`--backend and --sell belong together: --backend http://127.0.0.1:3000 --sell 'GET /search'`);
  const service = readServiceUrl(backend);
  if (!service.ok) throw new UsageError(service.fault);
  return {
    version: 1,
    merchant: { name: 'My shop' },
    backend: { baseUrl: service.url },
    protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
    resources: soldOperations(sell, price),
  };
}

async function sample(ends: AsyncDisposableStack): Promise<object> {
  const merchant = ends.adopt(await startSampleMerchant(), ({ stop }) => stop());
  return sampleConfig(merchant.url);
}

/** Runs the gateway anew when a file of the configuration changes. @returns what ends that */
function follow(
  source: ConfigSource,
  world: LocalWorld,
  { note, colour }: { readonly note: (text: string) => void; readonly colour: boolean },
): () => Promise<void> {
  const name = join(pathOf(source));
  let seen = readSources(source).digest;
  let replaced: Promise<void> = Promise.resolve();
  const replace = async (): Promise<void> => {
    try {
      if (await placed(source, () => world.replace(read(source))))
        note(`${name} has changed: the gateway runs with it at ${world.gateway().baseUrl}`);
    } catch (error) {
      const why = `${name} has changed, and the gateway goes on as before: ${(error as Error).message}`;
      note(colour ? styleText('red', why, { validateStream: false }) : why);
    }
  };
  const watch = watchDirectories(() => {
    const { digest, files } = readSources(source);
    if (digest === seen) return;
    seen = digest;
    watch.follow(files);
    replaced = replaced.then(replace);
  });
  watch.follow(readSources(source).files);
  return async () => {
    watch.close();
    await replaced;
  };
}
