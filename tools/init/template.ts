/** The configuration that `acg init` writes: a free resource and a priced one, with comments. */

import { hostKind } from '../../src/config/document/endpoints.ts';
import { KNOWN_NETWORKS } from '../../src/payments/pricing/networks.ts';
import { LOCAL_CHAIN_ID } from '../../src/payments/x402/evm/published-keys.ts';
import { LOCAL_PAYEE } from '../local-world/localized.ts';
import { WORLD_PORTS } from '../local-world/ports.ts';
import { TEST_BUYER } from '../local-world/test-buyer.ts';
import { LOCAL_TOKEN } from '../local-world/token.ts';

/** Where the money is, by the name that the command line has for it. */
export const INIT_NETWORKS = ['local', 'base-sepolia', 'base'] as const;
export type InitNetwork = (typeof INIT_NETWORKS)[number];

/** What a configuration is written from. */
export interface Answers {
  readonly network: InitNetwork;
  /** The name that agents and people see. */
  readonly merchant: string;
  /** URL of the service. */
  readonly backend: string;
  /** Undefined: a placeholder, or on the local chain an account of anvil. */
  readonly payTo: string | undefined;
  /** What editors find the schema by. */
  readonly schema: string;
}

/** What prices call the token, the same on every network: resources need no change. */
const CURRENCY = 'USDC';

/** YAML. Texts of the answers stand in quotes, which YAML reads as JSON does. */
export function configText(answers: Answers): string {
  const { network, merchant, backend, schema } = answers;
  const allowed = hostKind(new URL(backend)) === 'loopback' ? '' : ', allowNonLoopback: true';
  return `# yaml-language-server: $schema=${schema}
# What this shop sells to software agents. acg validate checks it, acg dev tries it with test money, acg serve runs it.
version: 1
merchant:
  id: ${idOf(merchant)}  # names the keys in the store: never change it while payments are open
  name: ${JSON.stringify(merchant)}
  publicBaseUrl: ${network === 'local' ? `http://127.0.0.1:${WORLD_PORTS.agents}` : `"\${PUBLIC_URL}"`}  # how agents reach the gateway
server:
  adminToken: ${network === 'base' ? `"\${file:/run/secrets/admin-token}"` : `"\${ADMIN_TOKEN:-}"`}  # of the operator: console, receipts and events; empty: there are none
backend: { baseUrl: ${JSON.stringify(backend)}${allowed} }  # your service
${storage(network)}
protocols:
  http: { enabled: true }
  mcp: { enabled: true }
  a2a: { enabled: true }
payments:
  x402:
${PAYMENTS[network](answers)}
resources:
  status:  # a free one: GET /status of your service
    name: Status
    description: Whether the shop is open
    backend: { method: GET, path: /status }
    pricing: { type: free }
    expose: [http, mcp, a2a]
  report:  # a priced one: GET /reports/{city}
    name: Report
    description: Prices and volumes of one city
    inputSchema:  # JSON Schema; what it does not declare is refused before there is a price
      type: object
      properties:
        city: { type: string, minLength: 1, maxLength: 64, examples: [Berlin] }
      required: [city]
    backend: { method: GET, path: "/reports/{city}" }
    pricing: { type: fixed, amount: "0.01", currency: ${CURRENCY} }
    expose: [http, mcp, a2a, origin]  # origin: at its own address, too
`;
}

/** A legal id out of a name. */
function idOf(merchant: string): string {
  const id = merchant
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);
  return id === '' ? 'shop' : id;
}

function storage(network: InitNetwork): string {
  if (network !== 'base') return 'storage: { sqlite: { path: ./data/gateway.db } }  # one process; several need redis';
  return `storage:
  redis: { url: "\${REDIS_URL}", username: gateway, password: "\${file:/run/secrets/redis-password}" }
  sealing: { keys: [{ id: first, key: "\${file:/run/secrets/sealing-key}" }] }  # openssl rand -base64 32`;
}

/** The section of payments, by network. */
const PAYMENTS: Readonly<Record<InitNetwork, (answers: Pick<Answers, 'payTo'>) => string>> = {
  local: ({
    payTo = LOCAL_PAYEE,
  }) => `    # The chain of acg dev: its token and its TEST key are the same for everyone, and refused on every other chain.
    network: eip155:${LOCAL_CHAIN_ID}
    asset: "${LOCAL_TOKEN.address}"
    assetName: ${LOCAL_TOKEN.name}
    assetVersion: "${LOCAL_TOKEN.version}"
    assetDecimals: ${LOCAL_TOKEN.decimals}
    currency: ${CURRENCY}  # what prices call the token
    payTo: ${JSON.stringify(payTo)}  # gets the money
    rpcUrl: http://127.0.0.1:${WORLD_PORTS.rpc}
    facilitator: { mode: local, privateKey: "${TEST_BUYER.key}" }  # sends the payments and pays gas`,
  'base-sepolia': ({
    payTo = `\${PAY_TO}`,
  }) => `    # Base Sepolia: test money from a faucet, and a facilitator without a login.
${usdc('eip155:84532')}
    payTo: ${JSON.stringify(payTo)}  # your address, which only receives: the gateway never has its key
    rpcUrl: "\${RPC_URL:-https://sepolia.base.org}"  # a node: every payment is checked on the chain
    facilitator: { mode: remote, url: https://www.x402.org/facilitator }  # sends the payments`,
  base: ({ payTo = `\${PAY_TO}` }) => `    # Base: real money, through Coinbase's facilitator.
${usdc('eip155:8453')}
    allowMainnet: true
    payTo: ${JSON.stringify(payTo)}  # your address, which only receives: the gateway never has its key
    rpcUrl: "\${RPC_URL}"  # of a provider: every payment is checked on the chain
    facilitator:  # sends the payments
      mode: remote
      url: https://api.cdp.coinbase.com/platform/v2/x402
      auth: { type: cdp, keyId: "\${file:/run/secrets/cdp-key-id}", keySecret: "\${file:/run/secrets/cdp-key-secret}" }`,
};

/** @throws Error for a network without a known USDC: a bug */
function usdc(network: string): string {
  const asset = KNOWN_NETWORKS.get(network)?.usdc;
  if (asset === undefined) throw new Error(`${network} has no USDC`);
  return `    network: ${network}
    asset: "${asset.address}"
    assetName: ${asset.name}  # its EIP-712 name
    assetVersion: "${asset.version}"
    assetDecimals: ${asset.decimals}
    currency: ${CURRENCY}  # what prices call it`;
}
