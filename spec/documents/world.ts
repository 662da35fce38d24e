/** What the blocks of the documents talk to: the world of `make run`, on free ports. */

import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { rootCertificates } from 'node:tls';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { connectChain } from '../../tools/local-world/chain.ts';
import { terminate } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { createBuyer } from '../support/buyer.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { freePorts } from '../support/ports.ts';
import { programFile } from '../support/program.ts';
import { askPrice, redeem } from '../support/purchase.ts';

const RUN = programFile('spec/support/run.ts');
const STOP_GRACE_MS = 15_000;
/** What an agent of the documents owns, base units (10 of the token). */
const AGENT_FUNDS_UNITS = 10_000_000n;

/** What is bought before a document is run: delivered, and not delivered. */
const PURCHASES = [
  ['market_report', '{"city":"Berlin"}'],
  ['flaky', '{"failures":1000}'],
] as const;

/** Where something listens, or would listen. */
export interface Ports {
  readonly agents: number;
  readonly management: number;
  readonly merchant: number;
}

/** A running local world, and who may use it. */
export interface LocalWorld {
  readonly ports: Ports;
  readonly rpcUrl: string;
  /** The address of the token that is paid with. */
  readonly token: string;
  /** Of a facilitator that serves its chain. */
  readonly facilitatorUrl: string;
  readonly adminToken: string;
  readonly acpToken: string;
  /** The key of an agent that owns the token of the chain. */
  readonly agentKey: string;
  /** The configuration of its gateway. */
  readonly configPath: string;
}

/** The members of its configuration that are read here. */
interface WorldConfig {
  readonly server: { readonly port: number; readonly adminToken: string };
  readonly management: { readonly port: number };
  readonly backend: { readonly baseUrl: string };
  readonly protocols: { readonly acp: { readonly auth: { readonly token: string } } };
  readonly payments: { readonly x402: { readonly rpcUrl: string } };
}

/**
 * Starts `make run`, and resolves when it has sold once and once failed to deliver: so operators
 * find something. `ends` ends it.
 */
export async function openLocalWorld(ends: AsyncDisposableStack): Promise<LocalWorld> {
  const [agents = 0, management = 0, merchant = 0, rpc = 0] = await freePorts(4);
  const env = {
    ...COMPILE_CACHE,
    PATH: process.env['PATH'] ?? '',
    GATEWAY_PORT: String(agents),
    MANAGEMENT_PORT: String(management),
    MERCHANT_PORT: String(merchant),
    RPC_PORT: String(rpc),
    DATA_DIR: await temporaryDirectory(ends, 'acg-documents-'),
  };
  const child = spawn(process.execPath, [RUN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  leash(child);
  ends.defer(async () => void (await terminate(child, STOP_GRACE_MS)));
  const printed: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(line);
    if (line.includes('Ctrl-C ends everything')) break;
  }
  const [, path] = /^Configuration +(\S+)$/m.exec(printed.join('\n')) ?? [];
  if (path === undefined) throw new Error(`make run names no configuration:\n${printed.join('\n')}`);
  const config = JSON.parse(readFileSync(path, 'utf8')) as WorldConfig;
  const { rpcUrl } = config.payments.x402;
  const chain = connectChain(rpcUrl);
  const facilitator = ends.adopt(await startFacilitator(chain), ({ stop }) => stop());
  const agentKey = generatePrivateKey();
  await chain.mint(privateKeyToAddress(agentKey), AGENT_FUNDS_UNITS);
  const buyer = await createBuyer(chain);
  for (const [resource, input] of PURCHASES) {
    const base = `http://127.0.0.1:${agents}`;
    const { paymentRequired } = await askPrice(base, resource, input);
    await redeem(base, resource, input, await buyer.pay(paymentRequired));
  }
  return {
    ports: { agents, management, merchant },
    rpcUrl,
    token: chain.token.address,
    facilitatorUrl: facilitator.url,
    adminToken: config.server.adminToken,
    acpToken: config.protocols.acp.auth.token,
    agentKey,
    configPath: path,
  };
}

/** Keys that the documents make by `openssl genpkey`. */
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** The secrets that the documents have under /run/secrets; only their form counts. */
export const SECRETS: Readonly<Record<string, string>> = {
  'admin-token': 'an-operator-token-of-the-documents',
  'sealing-key': Buffer.alloc(32, 1).toString('base64'),
  'sealing-key-1': Buffer.alloc(32, 2).toString('base64'),
  'acp-token': 'a-token-of-an-assistant-of-the-documents',
  'acp-secret': 'a-secret-of-the-documents-32-characters-long',
  'checkout.pem': privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  redis: 'a-password-of-the-documents',
  'redis-ca.pem': rootCertificates[0] ?? '',
};

/** Writes the secrets into a folder of a session. */
export function writeSecrets(folder: string): void {
  mkdirSync(folder);
  for (const [name, text] of Object.entries(SECRETS)) writeFileSync(join(folder, name), text);
}

/**
 * A text of a document with the addresses and names of this world in the place of those that a
 * reader replaces. docs/testing.md lists them.
 */
export function filled(text: string, world: LocalWorld, ports: Ports, secrets: string): string {
  const { rpcUrl, facilitatorUrl, adminToken, acpToken, configPath } = world;
  const base = `http://127.0.0.1:${ports.agents}`;
  return text
    .replaceAll(/\b8402\b/g, String(ports.agents))
    .replaceAll(/\b8403\b/g, String(ports.management))
    .replaceAll(/\b3000\b/g, String(ports.merchant))
    .replaceAll('https://api.market-shop.example', base)
    .replaceAll('https://www.x402.org/facilitator/', `${facilitatorUrl}/`)
    .replaceAll('GATEWAY RPC', `${base} ${rpcUrl}`)
    .replaceAll('TOKEN=…', `TOKEN=${adminToken}`)
    .replaceAll('RPC=…', `RPC=${rpcUrl}`)
    .replaceAll('--config FILE', `--config ${configPath}`)
    .replaceAll('<your token>', acpToken)
    .replaceAll(`\${REDIS_URL}`, 'redis://127.0.0.1:6379')
    .replaceAll(`\${RPC_URL}`, rpcUrl)
    .replaceAll('0x…', `0x${'1'.repeat(40)}`)
    .replaceAll('/run/secrets', secrets)
    .replaceAll('<overlay>', 'overlay')
    .replaceAll('<this repository>', '..')
    .replaceAll('<your registry>', 'registry.example')
    .replaceAll('<digest>', '0'.repeat(64));
}
