/**
 * `make run`: the local world of `acg dev` around sample merchants, until Ctrl-C. Receipts, events
 * and the gateway's log lie in ./data. Overrides: GATEWAY_PORT (8402), MANAGEMENT_PORT (8403),
 * RPC_PORT (8545), MERCHANT_PORT (any free one), ADMIN_TOKEN (random), DATA_DIR (./data). LOG_LEVEL
 * and OTEL_* go to the gateway.
 */

import { randomBytes } from 'node:crypto';
import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { ACP_VERSION } from '../../src/checkouts/operations.ts';
import { TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { LOCAL_PAYEE } from '../../tools/local-world/localized.ts';
import { type MovedBy, requireFreePort, WORLD_PORTS } from '../../tools/local-world/ports.ts';
import { runUntilStopped } from '../../tools/local-world/session.ts';
import { type LocalWorld, openLocalWorld } from '../../tools/local-world/world.ts';
import { makeKeys } from '../../tools/mandate/test-keys.ts';
import { startCheckoutBackend } from './acp/checkout-backend.ts';
import { type ConfigObject, CURRENCY, NO_CHAIN, worldConfig } from './config.ts';
import { membersReport, showcaseOnly } from './resources.ts';
import { startSampleBackend } from './sample-backend.ts';

/** The backend, and what a gateway and its first user need to use it. */
interface CheckoutShowcase {
  readonly url: string;
  /** `protocols.acp` of a gateway before it. */
  readonly protocol: ConfigObject;
  /**
   * Commands that open a session, pay it and read it, each on its line: all they need is a shell
   * and the address of the gateway.
   */
  commands(baseUrl: string): readonly string[];
  stop(): Promise<void>;
}

const CART = { line_items: [{ id: 'socks' }], currency: 'eur', capabilities: {} };
const PAYMENT = {
  payment_data: {
    handler_id: 'card',
    instrument: { type: 'card', credential: { type: 'spt', token: 'tok_of_the_buyer' } },
  },
};
/**
 * The backend numbers its sessions; a repetition of the first command opens no second one.
 */
const FIRST_SESSION = 'cs_1';

/** Starts the merchant on a free port, with secrets of this run. */
async function startCheckoutShowcase(): Promise<CheckoutShowcase> {
  const { url, stop } = await startCheckoutBackend();
  const [token, secret] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')];
  return {
    url,
    protocol: {
      enabled: true,
      auth: { token },
      backend: { baseUrl: url },
      idempotency: { secret },
      authenticationErrors: true,
    },
    commands: (baseUrl) => commands(`${baseUrl}/acp/checkout_sessions`, token),
    stop,
  };
}

function commands(sessions: string, token: string): readonly string[] {
  const who = `-H 'Authorization: Bearer ${token}' -H 'API-Version: ${ACP_VERSION}'`;
  const post = (path: string, key: string, body: object) =>
    `curl -si -w '\\n' '${sessions}${path}' ${who} -H 'Idempotency-Key: ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    post('', 'my-first-session', CART),
    post(`/${FIRST_SESSION}/complete`, 'my-first-payment', PAYMENT),
    `curl -s -w '\\n' '${sessions}/${FIRST_SESSION}' ${who}`,
  ];
}

/**
 * Makes new TEST keys in a folder, as `acg mandate keys` does. @returns the section `authorization`
 * of a gateway that trusts them
 */
async function trustTestKeys(folder: string): Promise<ConfigObject> {
  await rm(folder, { recursive: true, force: true });
  const { authorization } = parse(makeKeys(folder)) as ConfigObject;
  return authorization as ConfigObject;
}

const { env } = process;
const DIRECTORY = resolve(env['DATA_DIR'] ?? 'data');
const ENTRY = env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
/** The variables of this environment for the gateway. */
const PASSED_ON = /^(?:PATH|LOG_LEVEL|OTEL_\w+)$/;
const PORT_NAMES = { agents: 'GATEWAY_PORT', management: 'MANAGEMENT_PORT', rpc: 'RPC_PORT' } as const;
const MOVED_BY: MovedBy = {
  agents: `Set ${PORT_NAMES.agents} to use another one.`,
  management: `Set ${PORT_NAMES.management} to use another one.`,
  rpc: `Set ${PORT_NAMES.rpc} to use another one.`,
};

/** A port from the environment, or the default. */
function portFrom(name: string, fallback: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`${name} must be a port, 0 to 65535`);
  return port;
}

const PORTS = {
  agents: portFrom(PORT_NAMES.agents, WORLD_PORTS.agents),
  management: portFrom(PORT_NAMES.management, WORLD_PORTS.management),
  rpc: portFrom(PORT_NAMES.rpc, WORLD_PORTS.rpc),
};
// Files for each port: a second world beside the first must not take them away.
const LOG_PATH = join(DIRECTORY, `gateway-${PORTS.agents}.log`);
const TRY_PATH = join(DIRECTORY, `try-${PORTS.agents}.txt`);
/** Only the gateway of this world trusts these keys, so they may stay. */
const KEYS_FOLDER = join(DIRECTORY, `mandate-keys-${PORTS.agents}`);

interface Stage {
  readonly world: LocalWorld;
  readonly merchantUrl: string;
  readonly checkout: CheckoutShowcase;
}

async function open() {
  await using ends = new AsyncDisposableStack();
  const merchantPort = portFrom('MERCHANT_PORT', 0);
  await requireFreePort(merchantPort, 'Set MERCHANT_PORT to use another one.');
  await mkdir(DIRECTORY, { recursive: true });
  const log = openLog(ends);
  const checkout = ends.adopt(await startCheckoutShowcase(), ({ stop }) => stop());
  const merchant = ends.adopt(await startSampleBackend({ port: merchantPort }), ({ stop }) => stop());
  const token = env['ADMIN_TOKEN'];
  const document = worldConfig({
    backendUrl: merchant.url,
    chain: NO_CHAIN,
    storage: { sqlite: { path: '' } },
    facilitator: { mode: 'local' },
    ports: PORTS,
    payTo: LOCAL_PAYEE,
    ...(token === undefined || token === '' ? {} : { adminToken: token }),
    overrides: {
      protocols: { mcp: { enabled: true }, a2a: { enabled: true }, acp: checkout.protocol },
      authorization: await trustTestKeys(KEYS_FOLDER),
      backend: { passthrough: { enabled: true } },
      resources: {
        ...showcaseOnly(CURRENCY),
        market_report: { expose: ['http', 'mcp', 'a2a', 'origin'] },
        members_report: membersReport(CURRENCY),
      },
    },
  });
  const world = ends.adopt(
    await openLocalWorld(document, {
      entry: ENTRY,
      env: Object.fromEntries(Object.entries(env).filter(([name, text]) => PASSED_ON.test(name) && text !== '')),
      ports: PORTS,
      movedBy: MOVED_BY,
      dataDirectory: DIRECTORY,
      onLine: (line) => log.stream.write(`${line}\n`),
    }),
    ({ stop }) => stop(),
  );
  const stage = { world, merchantUrl: merchant.url, checkout };
  // It has the operator's token.
  await writeFile(TRY_PATH, commandsToTry(stage), { mode: 0o600 });
  console.log(introduction(stage));
  const opened = ends.move();
  return { failed: Promise.race([world.failed, log.failed]), stop: () => opened.disposeAsync() };
}

/** The file that gets the gateway's log. `failed`: one line when it cannot be written. */
function openLog(ends: AsyncDisposableStack): { readonly stream: WriteStream; readonly failed: Promise<string> } {
  const stream = createWriteStream(LOG_PATH, { mode: 0o600 });
  ends.defer(() => void stream.end());
  const failed = new Promise<string>((tell) => {
    stream.on('error', ({ code, message }: NodeJS.ErrnoException) =>
      tell(code === 'ENOSPC' ? `the disk is full: ${LOG_PATH}` : message),
    );
  });
  return { stream, failed };
}

const MCP_CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'market_report', arguments: { city: 'Berlin' } },
});
/** Base units, as JSON-RPC has numbers. */
const TEN_OF_THE_TOKEN = `0x${10_000_000n.toString(16)}`;
const A2A_PART = { data: { resource: 'cities', input: {} }, mediaType: 'application/json' };
const A2A_CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
  params: { message: { messageId: 'a-message-of-my-own', role: 'ROLE_USER', parts: [A2A_PART] } },
});

/** The chain of this world sets any balance of its token. */
function deal(token: string): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'anvil_dealERC20',
    params: ['ADDRESS', token, TEN_OF_THE_TOKEN],
  });
}

const PAY = 'npm run -s acg -- pay --yes';
const BERLIN = `'{"city":"Berlin"}'`;

/** What a first purchase needs. */
function introduction({ world }: Stage): string {
  const { baseUrl, adminToken, configPath } = world.gateway();
  return `
Gateway        ${baseUrl}
Console        ${baseUrl.replace('127.0.0.1', 'localhost')}/console
Operator       ${adminToken}
Configuration  ${configPath}
Log            ${LOG_PATH}
More to try    ${TRY_PATH}

Buy a report with test money, in another terminal:
  ${PAY} '${baseUrl}/api/resources/market_report/invoke' ${BERLIN}

Ctrl-C ends everything.
`;
}

/**
 * Each command stands alone on its line, its URLs in quotes: some shells read a `?` and even a
 * comment as part of the command.
 */
function commandsToTry({ world, merchantUrl, checkout }: Stage): string {
  const { chain } = world;
  const { baseUrl, managementUrl, adminToken } = world.gateway();
  const invoke = (id: string) => `'${baseUrl}/api/resources/${id}/invoke'`;
  const post = "-H 'content-type: application/json' -d";
  const atShop = (path: string) => `'${baseUrl}${path}'`;
  const [challenge, made] = [`'${join(DIRECTORY, '402.json')}'`, `'${join(DIRECTORY, 'mandate')}'`];
  const keys = `'${KEYS_FOLDER}'`;
  const operator = `-H 'Authorization: Bearer ${adminToken}'`;
  return `Management     ${managementUrl}
Merchant       ${merchantUrl}, and ${checkout.url} for checkouts
Chain          ${chain.rpcUrl}  (chain ${chain.chainId}, token ${chain.token.address})
Buyer          ${TEST_BUYER.address}  (TEST key ${TEST_BUYER.key}, refused on every other chain)
Payee          ${LOCAL_PAYEE}

  What is for sale
    curl -s '${baseUrl}/api/resources'
  A free call
    curl -s ${invoke('cities')} ${post} '{}'
  A paid one without payment: 402, the challenge
    curl -si ${invoke('market_report')} ${post} ${BERLIN}
  Paid by the buyer of this world; with --mcp or --a2a behind it, over that protocol
    ${PAY} ${invoke('market_report')} ${BERLIN}
  Ten of the token for an agent of your own: put its address in the place of ADDRESS
    curl -s '${chain.rpcUrl}' ${post} '${deal(chain.token.address)}'
  The merchant's own site behind the same door: a page for people, free data, a WebSocket that echoes
    curl -s ${atShop('/')}
    curl -s ${atShop('/weather/Berlin')}
    npm run -s echo -- ${atShop('/chat')} hello
  And a priced address of it: 402, then bought there
    curl -si ${atShop('/reports/Berlin')}
    ${PAY} ${atShop('/reports/Berlin')}
  Paid, and with a mandate that the TEST keys of this world make: ask, make one, buy
    curl -s ${invoke('members_report')} ${post} ${BERLIN} > ${challenge}
    npm run -s acg -- mandate direct --keys ${keys} --challenge ${challenge} > ${made}
    ${PAY} ${invoke('members_report')} ${BERLIN} --mcp --mandate ${made}
  The merchant fails, a thousand times: paid and not delivered, the first of these receipts
    ${PAY} ${invoke('flaky')} '{"failures":1000}' --wait 0
    curl -s ${operator} '${baseUrl}/api/receipts?delivered=false'
  The same resources over MCP
    curl -s '${baseUrl}/mcp' ${post} '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    curl -s '${baseUrl}/mcp' ${post} '${MCP_CALL}'
  And over A2A
    curl -s '${baseUrl}/.well-known/agent-card.json'
    curl -s '${baseUrl}/a2a' -H 'A2A-Version: 1.0' ${post} '${A2A_CALL}'
  A checkout (ACP): open a session, pay it, look at it. The same call again: the same answer, and idempotent-replayed: true
${indented(checkout.commands(baseUrl))}
  What the operator sees
    curl -s ${operator} '${baseUrl}/api/events?limit=10'
    curl -s ${operator} '${baseUrl}/api/receipts?limit=10'

GATEWAY_PORT, MANAGEMENT_PORT, RPC_PORT, MERCHANT_PORT, ADMIN_TOKEN, DATA_DIR, LOG_LEVEL and OTEL_* in the environment change this world.
`;
}

function indented(commands: readonly string[]): string {
  return commands.map((command) => `    ${command}`).join('\n');
}

try {
  await runUntilStopped(open);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
