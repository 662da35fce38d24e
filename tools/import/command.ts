/** `acg import SOURCE`: resources of an OpenAPI document; the report goes to standard error. */

import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { defineCommand, repeated, UsageError } from '../../src/cli/program.ts';
import { MAX_YAML_BYTES } from '../../src/config/document/parse.ts';
import { DOLLAR } from '../../src/config/sections/short-form.ts';
import { importOpenApi } from './import.ts';
import { type Existing, existing, writeInto, writeNew, yamlSection } from './output.ts';
import { amountFault } from './prices.ts';
import { jsonReport, resourceTable, textReport } from './report.ts';
import type { ResourceOptions } from './resource.ts';
import { firstOf, payableAfter } from './settle-after.ts';
import { readDocuments } from './source.ts';

export interface ImportArguments {
  /** The document: a path, an https URL, or an http URL on loopback. */
  readonly source: string;
  /** Price of operations without `x-price`, in display units. */
  readonly price?: string | undefined;
  /** Whether operations without `x-price` are given away. Where it is written, this or a price. */
  readonly free?: boolean | undefined;
  /** What prices are in; default: that of the configuration of `into`, else USDC. */
  readonly currency?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** `operationId` or `METHOD /path`. */
  readonly operations?: readonly string[] | undefined;
  readonly ignoreSecurity?: boolean | undefined;
  /** Instead of the path of the document's server. */
  readonly basePath?: string | undefined;
  /** Else where the resources of `into` are sold. */
  readonly expose?: readonly string[] | undefined;
  /** A new file for the section. */
  readonly out?: string | undefined;
  /** A configuration that the resources are added to. */
  readonly into?: string | undefined;
  readonly force?: boolean | undefined;
  /** Whether the report is JSON. */
  readonly json?: boolean | undefined;
}

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Where a command writes, and whom it asks: the process. */
interface Streams {
  readonly stdout: Output;
  readonly stderr: Output;
  /** Resolves to what a person typed; undefined without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
}

type Ask = NonNullable<Streams['ask']>;

const CHANNELS = ['http', 'mcp', 'a2a', 'origin'] as const;

/** The arguments as the command line names them. */
type ImportOptions = Omit<ImportArguments, 'source' | 'tags' | 'operations'> & {
  readonly tag?: readonly string[];
  readonly operation?: readonly string[];
};

export function importCommand(): Command {
  const about = `Makes resources of an OpenAPI 3.0 or 3.1 document, a file or a URL: parameters and body become one input. Prints or writes them,
with what is sold at which price, and what was skipped. Ends with 1 when nothing became a resource.`;
  return defineCommand('import', about, 'acg import openapi.yaml --tag reports --price 0.01 --into config.yaml')
    .argument('<source>')
    .option('--price <amount>', 'of operations without x-price')
    .option('--free', 'operations without x-price are given away')
    .option('--currency <code>', `else that of the configuration of --into, or ${DOLLAR}`)
    .option('--tag <name>', 'operations with this tag; may be repeated', repeated)
    .option('--operation <id>', 'this operationId, or "GET /path"; may be repeated', repeated)
    .option(
      '--expose <channel>',
      `${CHANNELS.join(', ')}; may be repeated; else as in the file of --into, or http`,
      repeated,
    )
    .option('--ignore-security', 'also operations that want a login: backend.headers has it')
    .option('--base-path <path>', "in place of the path of the document's server")
    .option('--out <file>', 'write a new file')
    .option('--into <file>', 'add them to a configuration')
    .option('--force', 'replace the file, or resources of the same id')
    .option('--json', 'the report as JSON')
    .action(async (source: string, { tag: tags, operation: operations, ...args }: ImportOptions) => {
      process.exitCode = await runImport({ source, tags, operations, ...args });
    });
}

/**
 * Exit code 0 when anything became a resource, 1 when nothing did.
 * @throws UsageError; Error of one line for a document that cannot be read
 */
export async function runImport(args: ImportArguments, streams: Streams = terminal()): Promise<number> {
  const { source, out, into, force = false, json = false } = args;
  const { stdout, stderr, ask } = streams;
  if (out !== undefined && into !== undefined) throw new UsageError('--out and --into exclude each other');
  if (args.price !== undefined && args.free === true) throw new UsageError('--price and --free exclude each other');
  const before = into === undefined ? undefined : existing(into);
  const options = resourceOptions(args, before);
  const documents = await readDocuments(source);
  const choice = { tags: args.tags ?? [], operations: args.operations ?? [] };
  const writes = out !== undefined || into !== undefined;
  let made = importOpenApi(documents, { ...options, choice });
  if (writes && args.price === undefined && args.free !== true && made.unpriced > 0) {
    const price = await priceFor(made.unpriced, options.currency, ask);
    if (price !== undefined) made = importOpenApi(documents, { ...options, price, choice });
  }
  const count = Object.keys(made.resources).length;
  if (count > 0) {
    if (out !== undefined) writeNew(out, made.resources, force);
    else if (into !== undefined) {
      const others = (before?.ids ?? []).filter((id) => !(force && id in made.resources));
      writeInto(into, made.resources, force, await removedOf(others, ask));
    } else {
      const text = yamlSection(made.resources);
      stdout.write(text);
      if (Buffer.byteLength(text) > MAX_YAML_BYTES)
        stderr.write(`a configuration in YAML has at most ${MAX_YAML_BYTES} bytes: use --out resources.json\n`);
    }
  }
  const tables = writes ? stdout : stderr;
  if (count > 0 && !json) {
    tables.write(`${resourceTable(made, columnsOf(tables))}\n`);
    const repeatable = before?.seals === true ? payableAfter(made.resources) : [];
    if (repeatable.length > 0) tables.write(`${proposal(repeatable)}\n\n`);
  }
  stderr.write(json ? jsonReport(made) : textReport(made, columnsOf(stderr)));
  return count > 0 ? 0 : 1;
}

function terminal(): Streams {
  const { stdin, stdout, stderr } = process;
  if (!stdin.isTTY) return { stdout, stderr };
  const ask = async (question: string): Promise<string> => {
    const questions = createInterface({ input: stdin, output: stderr });
    try {
      return (await questions.question(question)).trim();
    } finally {
      questions.close();
    }
  };
  return { stdout, stderr, ask };
}

function columnsOf({ isTTY, columns }: Output): number | undefined {
  return isTTY === true ? columns : undefined;
}

/**
 * Undefined: they are given away, which is said and never assumed.
 * @throws UsageError where there is no terminal to ask on
 */
async function priceFor(count: number, currency: string, ask: Ask | undefined): Promise<string | undefined> {
  const what = `${count === 1 ? '1 operation has' : `${count} operations have`} no x-price`;
  if (ask === undefined) throw new UsageError(`${what}: name its price with --price, or give it away with --free`);
  for (let fault = ''; ; ) {
    const typed = await ask(`${fault}${what}. Price of each in ${currency}, or free: `);
    if (typed === 'free') return undefined;
    const wrong = amountFault(typed);
    if (wrong === undefined) return typed;
    fault = `${wrong}\n`;
  }
}

/** Says how a merchant has the payment after the answer; the file has it before. */
function proposal(ids: readonly string[]): string {
  return `May also be paid after the answer: ${firstOf(ids)}. Write settle: after under the pricing of a resource, and the
backend answers first, the answer is kept sealed until it is paid, and no failure is paid for. Whom that suits:
docs/operators.md, "Settling after the call".`;
}

/** Resources of the file that a person does not want, such as first examples. */
async function removedOf(ids: readonly string[], ask: Ask | undefined): Promise<readonly string[]> {
  if (ids.length === 0 || ask === undefined) return [];
  const typed = await ask(`Remove ${firstOf(ids)} (the resources that the file has)? [y/N] `);
  return /^y(?:es)?$/i.test(typed) ? ids : [];
}

/** @throws UsageError */
function resourceOptions(args: ImportArguments, before: Existing | undefined): ResourceOptions {
  const { price, basePath, expose = [] } = args;
  const fault = price === undefined ? undefined : amountFault(price);
  if (fault !== undefined) throw new UsageError(`--price: ${fault}`);
  if (basePath !== undefined && !/^(?:\/[^?#{}\s]*[^/?#{}\s])?$/.test(basePath))
    throw new UsageError('--base-path must begin with /, without a slash at its end, or be empty');
  const channels = expose.map((name) => {
    const channel = CHANNELS.find((known) => known === name);
    if (channel === undefined) throw new UsageError(`--expose ${name}: there are ${CHANNELS.join(', ')}`);
    return channel;
  });
  const usual = CHANNELS.filter((channel) => before?.channels.includes(channel));
  const isUsual = usual.length === 1 && usual[0] === 'http';
  return {
    ...{ price, basePath, expose: expose.length > 0 || isUsual ? channels : usual },
    currency: args.currency ?? before?.currency ?? DOLLAR,
    ignoreSecurity: args.ignoreSecurity ?? false,
    headers: before?.headers,
  };
}
