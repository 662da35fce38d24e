/** What `acg dev` says when everything runs: addresses, the buyer, and commands to copy. */

import { connect } from 'node:net';
import { styleText } from 'node:util';
import { runChecks } from '../../src/cli/doctor/check.ts';
import { checkSoldPaths } from '../../src/cli/doctor/sold-paths.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import type { LocalWorld } from '../local-world/world.ts';
import { PROGRAM } from '../program-name.ts';
import { sampleInput } from './sample-input.ts';

/** How long a merchant that is there may take to accept a connection, milliseconds. */
const CONNECT_TIMEOUT_MS = 1_000;

interface Introduced {
  /** Of a configuration; undefined: there is none. */
  readonly file: string | undefined;
  /** Whether it is what runs. */
  readonly isRead: boolean;
  /** Entries of its payments that are not used. */
  readonly unused: readonly string[];
  readonly colour: boolean;
}

/** Each command stands alone on its line, its texts in quotes, so that any shell takes a copy. */
export async function introduction(world: LocalWorld, { file, isRead, unused, colour }: Introduced): Promise<string> {
  const { baseUrl, adminToken, config, configPath } = world.gateway();
  const { chain } = world;
  const isThere = await accepts(config.backend.origin);
  const warnings = isThere ? await soldPathWarnings(config) : [];
  const money = config.x402 === undefined ? 'nothing has a price' : `prices in ${currencyOf(config)}`;
  const without =
    unused.length === 0 ? '' : `\n${' '.repeat(17)}a local world has one chain: left out are ${unused.join(', ')}`;
  const unread =
    file === undefined
      ? `none is read; ${PROGRAM} init writes one`
      : `${file} is not read: --sell and --backend stand for it`;
  const strong = (text: string): string => (colour ? styleText('bold', text, { validateStream: false }) : text);
  return `
${strong(`${config.merchant.name}, in a local world`)}
  Gateway        ${baseUrl}
  Console        ${baseUrl}/console   token ${adminToken}
  Merchant       ${config.backend.origin}${isThere ? '' : '   does not answer yet: start it, calls are 503 until then'}
  Configuration  ${isRead ? file : unread}
                 as it runs here: --config ${configPath}
  Chain          ${chain.rpcUrl}   chain ${chain.chainId}, token ${chain.token.address}, ${money}${without}
  Buyer          ${TEST_BUYER.address}
                 TEST key ${TEST_BUYER.key}, refused on every other chain

${strong('Try, in another terminal:')}
${commands(world.gateway()).join('\n')}

${warnings.map((warning) => `Warning: ${warning}\n`).join('')}Ctrl-C ends everything.
`;
}

/** What the service does not have of what is sold. */
async function soldPathWarnings(config: GatewayConfig): Promise<readonly string[]> {
  const findings = await runChecks(checkSoldPaths(config, compileCatalogue(config)), () => undefined);
  return findings
    .filter(({ status }) => status === 'WARN' || status === 'FAIL')
    .map(({ message, remedy }) => (remedy === undefined ? message : `${message}; ${remedy}`));
}

function currencyOf({ resources }: GatewayConfig): string {
  for (const { pricing } of resources) if (pricing.type === 'fixed') return pricing.currency;
  return 'its own';
}

/** The price, a purchase, and what the operator sees of it. */
function commands({ baseUrl, adminToken, config }: ReturnType<LocalWorld['gateway']>): readonly string[] {
  const { resources } = config;
  const sold = resources.filter(({ exposedVia }) => exposedVia.includes('http'));
  const resource = sold.find(({ pricing }) => pricing.type === 'fixed') ?? sold[0];
  const receipts = `  curl -s -H ${quoted(`Authorization: Bearer ${adminToken}`)} ${quoted(`${baseUrl}/api/receipts?limit=10`)}`;
  if (resource === undefined) return [`  curl -s ${quoted(`${baseUrl}/api/resources`)}`, receipts];
  const url = quoted(`${baseUrl}/api/resources/${resource.id}/invoke`);
  const input = quoted(JSON.stringify(sampleInput(resource.inputSchema)));
  const call = `  curl -i ${url} -H 'content-type: application/json' -d ${input}`;
  return resource.pricing.type === 'fixed' ? [call, `  ${PROGRAM} pay ${url} ${input}`, receipts] : [call, receipts];
}

/** A word for POSIX shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Whether something listens at this origin. */
function accepts(origin: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(origin);
  const number = Number(port || (protocol === 'https:' ? 443 : 80));
  const socket = connect({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: number, timeout: CONNECT_TIMEOUT_MS });
  return new Promise((resolve) => {
    const end = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket
      .once('connect', () => end(true))
      .once('error', () => end(false))
      .once('timeout', () => end(false));
  });
}
