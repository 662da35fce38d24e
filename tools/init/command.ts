/** `acg init`: writes a first configuration, which a developer then makes his own. */

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import release from '../../package.json' with { type: 'json' };
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { UsageError } from '../../src/cli/exit-code.ts';
import { defineCommand } from '../../src/cli/program.ts';
import { readHttpUrl } from '../../src/config/document/endpoints.ts';
import { PROGRAM } from '../program-name.ts';
import { type Answers, configText, INIT_NETWORKS, type InitNetwork } from './template.ts';

const SCHEMA_FILE = 'acg-config.schema.json';
/** Editors fetch it in any folder and on any machine, of the version that wrote the file. */
const SCHEMA_URL = `https://unpkg.com/${release.name}@${release.version}/schemas/config.schema.json`;

interface InitOptions {
  readonly network?: InitNetwork;
  readonly merchant?: string;
  readonly backend?: string;
  readonly payTo?: string;
  readonly out: string;
  readonly schema?: true;
  readonly force?: true;
}

export function initCommand(): Command {
  const about = `Writes a commented configuration with one free and one priced resource as examples. On a terminal it asks for what no
option says. It never overwrites a file without --force.`;
  return defineCommand('init', about, 'acg init --network local --merchant "My shop" --backend http://127.0.0.1:3000')
    .addOption(
      new Option('--network <name>', 'local: money of acg dev; base-sepolia: test money; base: real money').choices(
        INIT_NETWORKS,
      ),
    )
    .option('--merchant <name>', 'the name that agents see')
    .option('--backend <url>', 'your service')
    .option('--pay-to <address>', 'gets the money, 0x…; else a placeholder')
    .option('--out <file>', 'where to write', 'config.yaml')
    .option('--schema', `write the JSON Schema beside it as ${SCHEMA_FILE}, for editors without a network`)
    .option('--force', 'overwrite what is there')
    .action(init);
}

async function init(options: InitOptions): Promise<void> {
  const { out, force } = options;
  const given = await answers(options);
  write(out, configText({ ...given, schema: options.schema ? `./${SCHEMA_FILE}` : SCHEMA_URL }), force);
  if (options.schema) write(join(dirname(out), SCHEMA_FILE), `${JSON.stringify(schema, null, 2)}\n`, force);
  process.stdout.write(`${nextSteps(out, given)}\n`);
}

/** @throws UsageError for an answer that cannot be right */
async function answers(options: InitOptions): Promise<Omit<Answers, 'schema'>> {
  const terminal = process.stdin.isTTY ? createInterface({ input: process.stdin, output: process.stderr }) : undefined;
  try {
    const network = options.network ?? networkOf(await ask(terminal, `Network (${INIT_NETWORKS.join(', ')})`, 'local'));
    const merchant = options.merchant ?? (await ask(terminal, 'Name of the shop', 'My shop'));
    const backend = options.backend ?? (await ask(terminal, 'URL of your service', 'http://127.0.0.1:3000'));
    const asked =
      network === 'local'
        ? ''
        : await ask(
            options.payTo === undefined ? terminal : undefined,
            'Your address for the money, 0x… (empty: set PAY_TO later)',
            '',
          );
    const payTo = options.payTo ?? (asked === '' ? undefined : asked);
    checkMerchant(merchant);
    checkBackend(backend);
    if (payTo !== undefined && !/^0x[0-9a-f]{40}$/i.test(payTo))
      throw new UsageError(`the address for the money must be 0x and 40 hexadecimal digits, not ${payTo}`);
    return { network, merchant, backend, payTo };
  } finally {
    terminal?.close();
  }
}

/** The usual answer where there is no terminal, or nothing is typed. */
async function ask(terminal: Interface | undefined, question: string, usual: string): Promise<string> {
  if (terminal === undefined) return usual;
  const typed = await terminal.question(`${question}${usual === '' ? '' : ` [${usual}]`}: `);
  return typed.trim() || usual;
}

function networkOf(text: string): InitNetwork {
  const found = INIT_NETWORKS.find((name) => name === text);
  if (found !== undefined) return found;
  throw new UsageError(`the network must be one of ${INIT_NETWORKS.join(', ')}, not ${text}`);
}

function checkMerchant(merchant: string): void {
  if (merchant === '' || merchant.length > 200)
    throw new UsageError('the name of the shop must have 1 to 200 characters');
}

function checkBackend(backend: string): void {
  const reading = readHttpUrl(backend, true);
  if (!reading.ok) throw new UsageError(`the URL of your service ${reading.message}`);
}

/** @throws Error where the file is there, and is not to be overwritten */
function write(file: string, text: string, force = false): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Error(`${file} is there already: --force overwrites it, --out writes elsewhere`);
  }
}

function nextSteps(out: string, { network, backend, payTo }: Omit<Answers, 'schema'>): string {
  const config = out === 'config.yaml' ? '' : ` --config ${out}`;
  const variables = ['PUBLIC_URL', ...(payTo === undefined ? ['PAY_TO'] : [])].join(' and ');
  const before = {
    local: '',
    'base-sepolia': `\nacg serve${config} needs ${variables} in the environment; acg dev needs neither.`,
    base: `\nacg serve${config} needs ${variables}, RPC_URL, REDIS_URL and the secrets it names; acg dev needs none of them.`,
  }[network];
  return `${out} is written: put the operations of ${backend} in the place of its examples, then
  ${PROGRAM} dev${config}
  ${PROGRAM} pay http://127.0.0.1:8402/reports/Berlin${before}`;
}
