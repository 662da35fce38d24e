/**
 * `make run`: chain, sample merchants and gateway on this machine until Ctrl-C. Receipts and events
 * lie in ./data. Overrides: GATEWAY_PORT (8402), MANAGEMENT_PORT (8403), MERCHANT_PORT (any free
 * one), ADMIN_TOKEN (random), DATA_DIR (./data). LOG_LEVEL and OTEL_* go to the gateway, whose log
 * is gateway.log beside the data.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { type CheckoutShowcase, startCheckoutShowcase } from './acp/showcase.ts';
import { CURRENCY } from './config.ts';
import { membersReport, showcaseOnly } from './resources.ts';
import { trustTestKeys } from './test-mandates.ts';
import { startWorld, type World } from './world.ts';

const { env } = process;
const DIRECTORY = resolve(env['DATA_DIR'] ?? 'data');
const LOG_PATH = join(DIRECTORY, 'gateway.log');
/** The variables of this environment for the gateway. */
const PASSED_ON = /^(?:LOG_LEVEL|OTEL_\w+)$/;

/** A port from the environment, or the default. */
function portFrom(name: string, fallback: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`${name} must be a port, 0 to 65535`);
  return port;
}

function agentsPort(): number {
  return portFrom('GATEWAY_PORT', 8402);
}

/** @throws Error that names the variable which moves the port. */
async function requireFree(port: number, variable: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((done, reject) => {
    server.once('error', () => reject(new Error(`Port ${port} is taken. Set ${variable} to use another one.`)));
    server.listen(port, '127.0.0.1', () => server.close(() => done()));
  });
}

interface Stage {
  readonly world: World;
  readonly checkout: CheckoutShowcase;
}

async function start(): Promise<Stage> {
  const ports = { agents: agentsPort(), management: portFrom('MANAGEMENT_PORT', 8403) };
  const merchantPort = portFrom('MERCHANT_PORT', 0);
  await requireFree(ports.agents, 'GATEWAY_PORT');
  await requireFree(ports.management, 'MANAGEMENT_PORT');
  await requireFree(merchantPort, 'MERCHANT_PORT');
  await mkdir(DIRECTORY, { recursive: true });
  await writeFile(LOG_PATH, '', { mode: 0o600 });
  // A file for each port: a second world beside the first must not take its database away.
  const path = join(DIRECTORY, `local-world-${ports.agents}.db`);
  // The chain starts new each time, so the payments of the last run lie on a chain that is gone.
  for (const end of ['', '-wal', '-shm']) await rm(`${path}${end}`, { force: true });
  const token = env['ADMIN_TOKEN'];
  const checkout = await startCheckoutShowcase();
  const world = await startWorld({
    ports,
    merchantPort,
    storage: { sqlite: { path } },
    logPath: LOG_PATH,
    env: passedOn(),
    overrides: {
      storage: { sealing: checkout.sealing },
      protocols: { mcp: { enabled: true }, a2a: { enabled: true, continuation: true }, acp: checkout.protocol },
      authorization: await trustTestKeys(keysFolder()),
      backend: { passthrough: { enabled: true } },
      resources: {
        ...showcaseOnly(CURRENCY),
        market_report: { expose: ['http', 'mcp', 'a2a', 'origin'] },
        members_report: membersReport(CURRENCY),
      },
    },
    ...(token === undefined || token === '' ? {} : { adminToken: token }),
  }).catch(async (error: unknown) => {
    await checkout.stop();
    throw error;
  });
  return { world, checkout };
}

/**
 * The keys of mandates. A world on another port has its own; only the gateway of this world trusts
 * them, so they may stay.
 */
function keysFolder(): string {
  return join(DIRECTORY, `mandate-keys-${agentsPort()}`);
}

function passedOn(): Readonly<Record<string, string>> {
  const given = Object.entries(env).filter(([name, text]) => PASSED_ON.test(name) && text !== undefined && text !== '');
  return Object.fromEntries(given) as Record<string, string>;
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

/**
 * Each command stands alone on its line, its URLs in quotes: some shells read a `?` and even a
 * comment as part of the command.
 */
function introduce({ world, checkout }: Stage): string {
  const { gateway, managementUrl, backend, chain, payTo, adminToken, configPath } = world;
  const invoke = (id: string) => `'${gateway.baseUrl}/api/resources/${id}/invoke'`;
  const post = "-H 'content-type: application/json' -d";
  const buy = `npm run -s buy -- '${gateway.baseUrl}' '${chain.rpcUrl}'`;
  const atShop = (path: string) => `'${gateway.baseUrl}${path}'`;
  const [city, challenge, made] = [
    `'{"city":"Berlin"}'`,
    `'${join(DIRECTORY, '402.json')}'`,
    `'${join(DIRECTORY, 'mandate')}'`,
  ];
  const keys = `'${keysFolder()}'`;
  const operator = `-H 'Authorization: Bearer ${adminToken}'`;
  return `
Gateway        ${gateway.baseUrl}
Console        ${gateway.baseUrl}/console
Management     ${managementUrl}
Merchant       ${backend.url}, and ${checkout.url} for checkouts
Chain          ${chain.rpcUrl}  (chain ${chain.chainId}, token ${chain.token.address})
Payee          ${payTo}
Operator       ${adminToken}
Configuration  ${configPath}
Log            ${LOG_PATH}

Try, in another terminal:
  What is for sale
    curl -s '${gateway.baseUrl}/api/resources'
  A free call
    curl -s ${invoke('cities')} ${post} '{}'
  A paid one without payment: 402, the challenge
    curl -si ${invoke('market_report')} ${post} ${city}
  Paid; with mcp or a2a behind it, over that channel
    ${buy} market_report ${city}
  Ten of the token for an agent of your own: put its address in the place of ADDRESS
    curl -s '${chain.rpcUrl}' ${post} '${deal(chain.token.address)}'
  The merchant's own site behind the same door: a page for people, free data, a WebSocket that echoes
    curl -s ${atShop('/')}
    curl -s ${atShop('/weather/Berlin')}
    npm run -s echo -- ${atShop('/chat')} hello
  And a priced address of it: 402, then bought there with the official client
    curl -si ${atShop('/reports/Berlin')}
    npm run -s buy -- ${atShop('/reports/Berlin')} '${chain.rpcUrl}'
  Paid, and with a mandate that the TEST keys of this world make: ask, make one, buy
    curl -s ${invoke('members_report')} ${post} ${city} > ${challenge}
    npm run -s acg -- mandate direct --keys ${keys} --challenge ${challenge} > ${made}
    ${buy} members_report ${city} mcp "$(cat ${made})"
  The merchant fails, a thousand times: paid and not delivered, the first of these receipts
    ${buy} flaky '{"failures":1000}'
    curl -s ${operator} '${gateway.baseUrl}/api/receipts?delivered=false'
  The same resources over MCP
    curl -s '${gateway.baseUrl}/mcp' ${post} '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    curl -s '${gateway.baseUrl}/mcp' ${post} '${MCP_CALL}'
  And over A2A
    curl -s '${gateway.baseUrl}/.well-known/agent-card.json'
    curl -s '${gateway.baseUrl}/a2a' -H 'A2A-Version: 1.0' ${post} '${A2A_CALL}'
  A checkout (ACP): open a session, pay it, look at it. The same call again: the same answer, and idempotent-replayed: true
${indented(checkout.commands(gateway.baseUrl))}
  What the operator sees
    curl -s ${operator} '${gateway.baseUrl}/api/events?limit=10'
    curl -s ${operator} '${gateway.baseUrl}/api/receipts?limit=10'

GATEWAY_PORT, MANAGEMENT_PORT, MERCHANT_PORT, ADMIN_TOKEN, DATA_DIR, LOG_LEVEL and OTEL_* in the environment change this world.
Ctrl-C ends everything.
`;
}

function indented(commands: readonly string[]): string {
  return commands.map((command) => `    ${command}`).join('\n');
}

/** Resolves with 0 when a signal ends it, with 1 when the gateway ends by itself. */
function untilStopped(world: World, stop: AbortSignal): Promise<number> {
  return new Promise((done) => {
    stop.addEventListener('abort', () => done(0), { once: true });
    void world.gateway.ended.then(({ code, signal }) => {
      if (stop.aborted) return;
      console.error(`The gateway ended (${signal ?? code}).\n${world.gateway.output()}`);
      done(1);
    });
  });
}

/**
 * The first signal ends everything in order. A signal before everything runs, or a second one, ends
 * it at once. The world leaves no key behind either way.
 */
const stop = new AbortController();
let running = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    if (!running || stop.signal.aborted) process.exit(1);
    stop.abort();
  });

try {
  const stage = await start();
  running = true;
  console.log(introduce(stage));
  process.exitCode = await untilStopped(stage.world, stop.signal);
  await stage.world.stop();
  await stage.checkout.stop();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
