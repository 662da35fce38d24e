/** `acg import SOURCE`: resources of an OpenAPI document; the report goes to standard error. */

import type { Command } from 'commander';
import { UsageError } from '../../src/cli/exit-code.ts';
import { defineCommand } from '../../src/cli/program.ts';
import { MAX_YAML_BYTES } from '../../src/config/document/parse.ts';
import { importOpenApi } from './import.ts';
import { type Existing, existing, writeInto, writeNew, yamlSection } from './output.ts';
import { amountFault } from './prices.ts';
import { jsonReport, textReport } from './report.ts';
import type { ResourceOptions } from './resource.ts';
import { readDocuments } from './source.ts';

export interface ImportArguments {
  /** The document: a path, an https URL, or an http URL on loopback. */
  readonly source: string;
  /** Price of operations without `x-price`, in display units; default: free. */
  readonly price?: string | undefined;
  /** What prices are in; default: that of the configuration of `into`, else USDC. */
  readonly currency?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** `operationId` or `METHOD /path`. */
  readonly operations?: readonly string[] | undefined;
  readonly ignoreSecurity?: boolean | undefined;
  /** Instead of the path of the document's server. */
  readonly basePath?: string | undefined;
  readonly expose?: readonly string[] | undefined;
  /** A new file for the section. */
  readonly out?: string | undefined;
  /** A configuration that the resources are added to. */
  readonly into?: string | undefined;
  readonly force?: boolean | undefined;
  /** Whether the report is JSON. */
  readonly json?: boolean | undefined;
}

/** Where a command writes: the process. */
interface Streams {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number };
}

const CHANNELS = ['http', 'mcp', 'a2a', 'origin'] as const;
const USUAL_CURRENCY = 'USDC';

/** The arguments as the command line names them. */
type ImportOptions = Omit<ImportArguments, 'source' | 'tags' | 'operations'> & {
  readonly tag?: readonly string[];
  readonly operation?: readonly string[];
};

export function importCommand(): Command {
  const about = `Makes resources of an OpenAPI 3.0 or 3.1 document, a file or a URL: parameters and body become one input. Prints them, or writes them; stderr
tells what was skipped, and why. Ends with 1 when nothing became a resource.`;
  const listed = (one: string, before: readonly string[] = []): readonly string[] => [...before, one];
  return defineCommand('import', about, 'acg import openapi.yaml --tag reports --price 0.01 --into config.yaml')
    .argument('<source>')
    .option('--price <amount>', 'of operations without x-price; else they are free')
    .option('--currency <code>', `else that of the configuration of --into, or ${USUAL_CURRENCY}`)
    .option('--tag <name>', 'operations with this tag; may be repeated', listed)
    .option('--operation <id>', 'this operationId, or "GET /path"; may be repeated', listed)
    .option('--expose <channel>', `${CHANNELS.join(', ')}; may be repeated; else http`, listed)
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
export async function runImport(args: ImportArguments, { stdout, stderr }: Streams = process): Promise<number> {
  const { source, out, into, force = false, json = false } = args;
  if (out !== undefined && into !== undefined) throw new UsageError('--out and --into exclude each other');
  const before = into === undefined ? undefined : existing(into);
  const options = resourceOptions(args, before);
  const documents = await readDocuments(source);
  const made = importOpenApi(documents, {
    ...options,
    choice: { tags: args.tags ?? [], operations: args.operations ?? [] },
  });
  const count = Object.keys(made.resources).length;
  if (count > 0) {
    if (out !== undefined) writeNew(out, made.resources, force);
    else if (into !== undefined) writeInto(into, made.resources, force);
    else {
      const text = yamlSection(made.resources);
      stdout.write(text);
      if (Buffer.byteLength(text) > MAX_YAML_BYTES)
        stderr.write(`a configuration in YAML has at most ${MAX_YAML_BYTES} bytes: use --out resources.json\n`);
    }
  }
  stderr.write(json ? jsonReport(made) : textReport(made, stderr.isTTY === true ? stderr.columns : undefined));
  return count > 0 ? 0 : 1;
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
  return {
    ...{ price, basePath, expose: channels },
    currency: args.currency ?? before?.currency ?? USUAL_CURRENCY,
    ignoreSecurity: args.ignoreSecurity ?? false,
    headers: before?.headers,
  };
}
