/** `acg wallet`: an MCP server on stdio, whose tools find, price and buy within limits. */

import { fromJsonSchema, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Command } from 'commander';
import release from '../../package.json' with { type: 'json' };
import { defineCommand, repeated, UsageError } from '../../src/cli/program.ts';
import { LOCAL_CHAIN_ID, NETWORK_NAMES } from '../../src/payments/pricing/networks.ts';
import { eip155ChainId } from '../../src/payments/x402/wire/proof.ts';
import { baseUnits, inUnits, plain, tokenOf } from '../pay/offer.ts';
import { reasonOf } from '../pay/send.ts';
import { openWallet } from '../pay/wallet.ts';
import { openPurchases, type Policy, type ResourceCall, type Told } from './purchases.ts';

interface WalletOptions {
  readonly allow?: readonly string[];
  readonly keyFile?: string;
  readonly maxEach?: string;
  readonly maxTotal?: string;
  readonly network: string;
}

export function walletCommand(): Command {
  const about = `An MCP server on stdio: an assistant finds, asks the price of, and buys resources of the gateways that you allow. The total counts
each payment that is signed, and lasts for the life of the process: a restart begins a new one. A payment whose outcome is open is kept beside
the key file, and sent again by the next purchase of the same input.`;
  return defineCommand('wallet', about, 'acg wallet --allow 127.0.0.1:8402 --max-each 0.05 --max-total 1')
    .option('--allow <host>', 'buy there: shop.example, or 127.0.0.1:8402; may be repeated', repeated)
    .option('--key-file <file>', 'the private key to pay with; else that of the TEST buyer of acg dev')
    .option('--max-each <amount>', 'refuse a dearer price: 0.05 of the token, or 50000units')
    .option('--max-total <amount>', 'refuse what makes the sum of all payments larger')
    .option('--network <name>', 'such as base; then --key-file and both limits are needed', 'local')
    .action((options: WalletOptions) => serveWallet(policyOf(options)));
}

/** @throws UsageError for what does not fit together; errors of the key file */
function policyOf({ allow = [], keyFile, maxEach, maxTotal, network: named }: WalletOptions): Policy {
  if (allow.length === 0) throw new UsageError('--allow is missing: name each host to buy from');
  const network = NETWORK_NAMES.get(named) ?? named;
  const chainId = eip155ChainId(network);
  const token = tokenOf(network);
  if (chainId === undefined || token === undefined)
    throw new UsageError(`--network must be one of ${[...NETWORK_NAMES.keys()].join(', ')}, not ${named}`);
  for (const [option, value] of Object.entries({ 'key-file': keyFile, 'max-each': maxEach, 'max-total': maxTotal }))
    if (value === undefined && chainId !== LOCAL_CHAIN_ID)
      throw new UsageError(`--${option} is missing: on ${named} the key file and both limits are needed`);
  const limit = (most: string | undefined, option: string): bigint | undefined =>
    most === undefined ? undefined : baseUnits(most, token.decimals, option);
  return {
    hosts: allow.map(hostOf),
    network,
    token,
    maxEach: limit(maxEach, 'max-each'),
    maxTotal: limit(maxTotal, 'max-total'),
    // The environment of an MCP server stands in the file of its host, so no key is read from it.
    wallet: openWallet(chainId, keyFile, {}),
    keyFile,
  };
}

/** A host as URLs have it. @throws UsageError */
function hostOf(text: string): string {
  const url = `https://${text}`;
  if (!/[/\\?#@*\s]/.test(text) && URL.canParse(url)) return new URL(url).host;
  throw new UsageError(`--allow must be a host such as shop.example or 127.0.0.1:8402, not ${text}`);
}

/** Serves until stdin ends. Nothing but the protocol goes to stdout. */
function serveWallet(policy: Policy): void {
  const purchases = openPurchases(policy, note);
  const about = aboutOf(policy);
  const gateway = { type: 'string', description: `URL of the gateway; allowed hosts: ${policy.hosts.join(', ')}` };
  const resource = { type: 'string', description: 'id of the resource, as find lists it' };
  const input = { type: 'object', description: 'input of the resource, by the inputSchema that find lists' };
  const ofGateway = fromJsonSchema<Pick<ResourceCall, 'gateway'>>(objectOf({ gateway }, ['gateway']));
  const ofCall = fromJsonSchema<ResourceCall>(objectOf({ gateway, resource, input }, ['gateway', 'resource']));
  const looks = { readOnlyHint: true, openWorldHint: true };
  const calls = { openWorldHint: true };
  const spends = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
  serveStdio(
    () => {
      const server = new McpServer({ name: 'acg-wallet', version: release.version }, { instructions: about });
      server.registerTool(
        'find',
        { description: 'List what a gateway sells.', inputSchema: ofGateway, annotations: looks },
        ({ gateway }) => answered(() => purchases.find(gateway)),
      );
      server.registerTool(
        'price',
        {
          description: 'Ask the price of one call. Pays nothing; a free resource is called.',
          inputSchema: ofCall,
          annotations: calls,
        },
        (call) => answered(() => purchases.price(call)),
      );
      server.registerTool(
        'buy',
        {
          description: `Buy one call and get its answer. ${about} When the outcome is open, buy with the same input: it pays once.`,
          inputSchema: ofCall,
          annotations: spends,
        },
        (call, { mcpReq }: ServerContext) => answered(() => purchases.buy(call, mcpReq.signal)),
      );
      return server;
    },
    { onerror: (error) => note(reasonOf(error)) },
  );
  note(`${about} Waits for an MCP host on stdin.`);
}

function aboutOf({ hosts, network, token, maxEach, maxTotal, wallet }: Policy): string {
  const bound = (units: bigint | undefined): string =>
    units === undefined ? 'without a limit' : `at most ${inUnits(String(units), token.decimals)} ${token.symbol}`;
  return `Pays from ${wallet.address} on ${network} to gateways at ${hosts.join(', ')}: ${bound(maxEach)} each time, ${bound(maxTotal)} together.`;
}

function objectOf(properties: Record<string, object>, required: string[]) {
  return { type: 'object', properties, required, additionalProperties: false } as const;
}

/** A refusal is a result too: its words tell the assistant which limit there is. */
async function answered(work: () => Promise<Told>) {
  try {
    const { words, data, isError } = await work();
    const content = [words, JSON.stringify(data)].map((text) => ({ type: 'text' as const, text }));
    return { content, structuredContent: data, isError };
  } catch (error) {
    const text = plain(reasonOf(error));
    note(text);
    return { content: [{ type: 'text' as const, text }], isError: true };
  }
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
