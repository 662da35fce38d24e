/** `acg init`: writes a first configuration, which a developer then makes his own. */

import { accessSync, existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import release from '../../package.json' with { type: 'json' };
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { defineCommand, repeated, UsageError } from '../../src/cli/program.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { sampleInput } from '../dev/sample-input.ts';
import { PROGRAM } from '../program-name.ts';
import { findDocument, statusOf } from './look.ts';
import { amountOf, soldOperations } from './operation.ts';
import { readServiceUrl } from './service-url.ts';
import { type Answers, configText, INIT_NETWORKS, type InitNetwork } from './template.ts';

const SCHEMA_FILE = 'acg-config.schema.json';
/** Editors fetch it in any folder and on any machine, of the version that wrote the file. */
const SCHEMA_URL = `https://unpkg.com/${release.name}@${release.version}/schemas/config.schema.json`;

interface InitOptions {
  readonly network?: InitNetwork;
  readonly merchant?: string;
  readonly backend?: string;
  readonly payTo?: string;
  readonly sell?: readonly string[];
  readonly price: string;
  readonly out: string;
  readonly schema?: true;
  readonly force?: true;
}

export function initCommand(): Command {
  const about = `Writes a first configuration that sells what your service has: the GET operations of its OpenAPI document, else those of --sell. On
a terminal it asks for what no option says. It never overwrites a file without --force.`;
  return defineCommand('init', about, 'acg init --backend http://127.0.0.1:3000 --sell "GET /search?q=socks"')
    .addOption(
      new Option('--network <name>', 'local: money of acg dev; base-sepolia: test money; base: real money').choices(
        INIT_NETWORKS,
      ),
    )
    .option('--merchant <name>', 'the name that agents see')
    .option('--backend <url>', 'your service')
    .option('--pay-to <address>', 'gets the money, 0x…; else a placeholder')
    .option('--sell <operation>', "such as 'GET /search?q=socks', with an example; may be repeated", repeated)
    .option('--price <amount>', 'of each, in USDC, or free', '0.01')
    .option('--out <file>', 'where to write', 'config.yaml')
    .option('--schema', `write the JSON Schema beside it as ${SCHEMA_FILE}, for editors without a network`)
    .option('--force', 'overwrite what is there')
    .action(init);
}

async function init(options: InitOptions): Promise<void> {
  const { out, force } = options;
  if (!force && existsSync(out)) throw thereAlready(out);
  accessSync(dirname(out));
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
    checkMerchant(merchant);
    const backend = await backendOf(options, terminal);
    const asked =
      network === 'local'
        ? ''
        : await ask(
            options.payTo === undefined ? terminal : undefined,
            'Your address for the money, 0x… (empty: set PAY_TO later)',
            '',
          );
    const payTo = options.payTo ?? (asked === '' ? undefined : asked);
    if (payTo !== undefined && !/^0x[0-9a-f]{40}$/i.test(payTo))
      throw new UsageError(`the address for the money must be 0x and 40 hexadecimal digits, not ${payTo}`);
    return { network, merchant, backend, payTo, resources: await resourcesOf(backend, options, terminal) };
  } finally {
    terminal?.close();
  }
}

/** Asks again for what is no URL, with the one that was probably meant. */
async function backendOf({ backend }: InitOptions, terminal: Interface | undefined): Promise<string> {
  let usual = 'http://127.0.0.1:3000';
  for (;;) {
    const reading = readServiceUrl(backend ?? (await ask(terminal, 'URL of your service', usual)));
    if (reading.ok) return reading.url;
    if (backend !== undefined || terminal === undefined) throw new UsageError(reading.fault);
    process.stderr.write(`${reading.fault}\n`);
    usual = reading.meant ?? usual;
  }
}

/** What the service has; what it answers to an operation of the command line is said. */
async function resourcesOf(
  backend: string,
  { sell, price }: InitOptions,
  terminal: Interface | undefined,
): Promise<Answers['resources']> {
  const named = soldOperations(sell ?? [], price);
  const note = (text: string): void => void process.stderr.write(`${text}\n`);
  const isUp = (await statusOf(backend, '/')) !== undefined;
  if (!isUp) note(`${backend} does not answer: start your service, or correct the URL; what is sold is not checked.`);
  const found = sell === undefined && isUp ? await findDocument(backend, amountOf(price)) : undefined;
  if (found !== undefined) {
    const names = Object.keys(found.resources);
    note(
      `${found.url}: ${names.length} operations with GET are sold (${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}).`,
    );
    if (found.more > 0) note(`It has ${found.more} others: ${PROGRAM} import ${found.url} tells of each.`);
    return found.resources;
  }
  const check = async (texts: readonly string[]): Promise<boolean> => {
    const faults = isUp ? await faultsOf(backend, texts) : [];
    for (const fault of faults) note(fault);
    return faults.length === 0;
  };
  if (sell !== undefined) {
    await check(sell);
    return named;
  }
  if (isUp) note(`${backend} serves no OpenAPI document that can be sold from; --sell names operations.`);
  for (;;) {
    const texts = [await ask(terminal, 'Operation to sell, with an example', 'GET /')];
    const resources = soldOperations(texts, price);
    if ((await check(texts)) || terminal === undefined) return resources;
  }
}

/** What a merchant should know of operations with GET before an agent pays for them. */
async function faultsOf(backend: string, operations: readonly string[]): Promise<readonly string[]> {
  const asked = operations
    .map((text) => text.trim().replace(/^GET /i, ''))
    .filter((target) => target.startsWith('/') && !target.includes('{'));
  const found = await Promise.all(asked.map(async (target) => ({ target, status: await statusOf(backend, target) })));
  return found
    .filter(({ status }) => status === undefined || status >= 400)
    .map(
      ({ target, status }) =>
        `GET ${target} of your service ${status === undefined ? 'does not answer' : `answers ${status}`}: buyers would pay for that; correct --sell`,
    );
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

/** @throws Error where the file is there, and is not to be overwritten */
function write(file: string, text: string, force = false): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw thereAlready(file);
  }
}

function thereAlready(file: string): Error {
  return new Error(`${file} is there already: --force overwrites it, --out writes elsewhere`);
}

function nextSteps(out: string, { network, payTo, resources }: Omit<Answers, 'schema'>): string {
  const config = out === 'config.yaml' ? '' : ` --config ${out}`;
  const [[first, resource] = ['', {}]] = Object.entries(resources);
  const input = JSON.stringify(sampleInput((resource as { inputSchema?: JsonObject }).inputSchema));
  const variables = ['PUBLIC_URL', ...(payTo === undefined ? ['PAY_TO'] : [])].join(' and ');
  const before = {
    local: '',
    'base-sepolia': `\nacg serve${config} needs ${variables} in the environment; acg dev needs neither.`,
    base: `\nacg serve${config} needs ${variables}, RPC_URL, REDIS_URL and the secrets it names; acg dev needs none of them.`,
  }[network];
  return `${out} is written. Then, each in a terminal of its own:
  ${PROGRAM} dev${config}
  ${PROGRAM} pay http://127.0.0.1:8402 --resource ${first}${input === '{}' ? '' : ` '${input.replaceAll("'", `'\\''`)}'`}${before}`;
}
