/**
 * `make run`: chain, sample merchant and gateway on this machine until Ctrl-C. Receipts and events lie in ./data.
 * Overrides: GATEWAY_PORT (8402), MANAGEMENT_PORT (8403), MERCHANT_PORT (any free one), ADMIN_TOKEN (random), DATA_DIR (./data).
 */
import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { CURRENCY } from './config.ts';
import { showcaseOnly } from './resources.ts';
import { startWorld, type World } from './world.ts';

const { env } = process;

/** A port from the environment, or the default. */
function portFrom(name: string, fallback: number): number {
  const text = env[name];
  if (text === undefined || text === '') return fallback;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`${name} must be a port, 0 to 65535`);
  return port;
}

/** @throws Error that names the variable which moves the port. */
async function requireFree(port: number, variable: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((done, reject) => {
    server.once('error', () => reject(new Error(`Port ${port} is taken. Set ${variable} to use another one.`)));
    server.listen(port, '127.0.0.1', () => server.close(() => done()));
  });
}

async function start(): Promise<World> {
  const ports = { agents: portFrom('GATEWAY_PORT', 8402), management: portFrom('MANAGEMENT_PORT', 8403) };
  const merchantPort = portFrom('MERCHANT_PORT', 0);
  await requireFree(ports.agents, 'GATEWAY_PORT');
  await requireFree(ports.management, 'MANAGEMENT_PORT');
  await requireFree(merchantPort, 'MERCHANT_PORT');
  const directory = resolve(env['DATA_DIR'] ?? 'data');
  await mkdir(directory, { recursive: true });
  // A file for each port: a second world beside the first must not take its database away.
  const path = join(directory, `local-world-${ports.agents}.db`);
  // The chain starts new each time, so the payments of the last run lie on a chain that is gone.
  for (const end of ['', '-wal', '-shm']) await rm(`${path}${end}`, { force: true });
  const token = env['ADMIN_TOKEN'];
  return startWorld({
    ports,
    merchantPort,
    storage: { sqlite: { path } },
    overrides: {
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      resources: showcaseOnly(CURRENCY),
    },
    ...(token === undefined || token === '' ? {} : { adminToken: token }),
  });
}

const MCP_CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'market_report', arguments: { city: 'Berlin' } },
});
const A2A_PART = { data: { resource: 'cities', input: {} }, mediaType: 'application/json' };
const A2A_CALL = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
  params: { message: { messageId: 'a-message-of-my-own', role: 'ROLE_USER', parts: [A2A_PART] } },
});

function introduce({ gateway, managementUrl, merchant, chain, payTo, adminToken }: World): string {
  const invoke = (id: string) => `${gateway.baseUrl}/api/resources/${id}/invoke`;
  const post = "-H 'content-type: application/json' -d";
  const buy = `npm run -s buy -- ${gateway.baseUrl} ${chain.rpcUrl} market_report '{"city":"Berlin"}'`;
  return `
Gateway      ${gateway.baseUrl}
Management   ${managementUrl}
Merchant     ${merchant.url}
Chain        ${chain.rpcUrl}  (chain ${chain.chainId}, token ${chain.token.address}, anyone can mint)
Payee        ${payTo}
Operator     ${adminToken}

Try:
  curl -s ${gateway.baseUrl}/api/resources                                  # what is for sale
  curl -s ${invoke('cities')} ${post} '{}'                # free
  curl -si ${invoke('market_report')} ${post} '{"city":"Berlin"}'   # 402: the challenge
  ${buy}   # pays it; with mcp or a2a behind it, over that front
  curl -s ${gateway.baseUrl}/mcp ${post} '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'   # the same shop over MCP
  curl -s ${gateway.baseUrl}/mcp ${post} '${MCP_CALL}'
  curl -s ${gateway.baseUrl}/.well-known/agent-card.json                    # and over A2A
  curl -s ${gateway.baseUrl}/a2a -H 'A2A-Version: 1.0' ${post} '${A2A_CALL}'
  curl -s -H 'Authorization: Bearer ${adminToken}' '${gateway.baseUrl}/api/events?limit=10'
  curl -s -H 'Authorization: Bearer ${adminToken}' '${gateway.baseUrl}/api/receipts?limit=10'

Ctrl-C ends everything.
`;
}

/** Resolves with 0 on Ctrl-C or SIGTERM, with 1 when the gateway ends by itself. */
function untilTold(world: World): Promise<number> {
  return new Promise((done) => {
    let told = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        told = true;
        done(0);
      });
    void world.gateway.ended.then(({ code, signal }) => {
      if (told) return;
      console.error(`The gateway ended (${signal ?? code}).\n${world.gateway.output()}`);
      done(1);
    });
  });
}

try {
  const world = await start();
  console.log(introduce(world));
  process.exitCode = await untilTold(world);
  await world.stop();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
