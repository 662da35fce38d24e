/** The configuration that `acg init` writes, in the short form, with comments. */

import { Document, visit } from 'yaml';
import { hostKind } from '../../src/config/document/endpoints.ts';
import { idOf } from '../../src/config/sections/short-form.ts';
import { firstOf, type PricedResource, payableAfter } from '../import/settle-after.ts';
import { LOCAL_PAYEE } from '../local-world/localized.ts';

/** Where the money is, by the names that the configuration has for networks. */
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
  /** By id. */
  readonly resources: Readonly<Record<string, PricedResource>>;
  /** What editors find the schema by. */
  readonly schema: string;
}

/** Nodes above a member of a resource: documents, mappings and their pairs. */
const RESOURCE_DEPTH = 5;

/** YAML. Texts of the answers stand in quotes, which YAML reads as JSON does. */
export function configText(answers: Answers): string {
  const { network, merchant, backend, resources, schema } = answers;
  const id = idOf(merchant) === '' ? 'id: shop, ' : '';
  const allowed = hostKind(new URL(backend)) === 'loopback' ? '' : ', allowNonLoopback: true';
  const url = network === 'local' ? '' : `, publicBaseUrl: "\${PUBLIC_URL}"`;
  return `# yaml-language-server: $schema=${schema}
# What this shop sells to software agents. acg validate checks it, acg dev tries it with test money, acg serve runs it.
version: 1
merchant: { ${id}name: ${JSON.stringify(merchant)}${url} }
server: { adminToken: ${network === 'base' ? `"\${file:/run/secrets/admin-token}"` : `"\${ADMIN_TOKEN:-}"`} }  # of the operator: console, receipts and events; empty: there are none
backend: { baseUrl: ${JSON.stringify(backend)}${allowed} }  # your service
protocols: { mcp: { enabled: true }, a2a: { enabled: true } }
${network === 'base' ? STORAGE : ''}payments:
  x402:
${PAYMENTS[network](answers)}
${network === 'base' ? settleAfter(resources) : ''}${resourcesText(resources)}`;
}

/** Beside sealing keys alone, which the other networks go without. */
function settleAfter(resources: Answers['resources']): string {
  const ids = payableAfter(resources);
  const { pricing = 'free' } = resources[ids[0] ?? ''] ?? {};
  if (pricing === 'free') return '';
  const amount = typeof pricing === 'string' ? pricing.slice(1) : 'amount' in pricing && pricing.amount;
  return `# May be paid after the answer: ${firstOf(ids)}. The answer is kept sealed until it is paid, and no failure is paid
# for; docs/operators.md tells whom it suits: pricing: { type: fixed, amount: "${amount}", currency: USDC, settle: after }
`;
}

/** Each member of a resource in a line of its own, where it fits. */
function resourcesText(resources: Answers['resources']): string {
  const document = new Document({ resources }, { aliasDuplicateObjects: false, version: '1.2' });
  visit(document, {
    Collection(_key, node, path) {
      node.flow = path.length > RESOURCE_DEPTH;
    },
  });
  return document.toString({ lineWidth: 120 });
}

/** Of real money; elsewhere a database beside the configuration is enough. */
const STORAGE = `storage:
  redis: { url: "\${REDIS_URL}", username: gateway, password: "\${file:/run/secrets/redis-password}" }
  sealing: { keys: [{ id: first, key: "\${file:/run/secrets/sealing-key}" }] }  # openssl rand -base64 32
`;

/** The section of payments, by network. */
const PAYMENTS: Readonly<Record<InitNetwork, (answers: Pick<Answers, 'payTo'>) => string>> = {
  local: ({
    payTo = LOCAL_PAYEE,
  }) => `    network: local  # the chain of acg dev, with test money; base-sepolia has a faucet, base real money
    payTo: ${JSON.stringify(payTo)}  # gets the money`,
  'base-sepolia': ({ payTo = `\${PAY_TO}` }) => `    network: base-sepolia  # test money from a faucet
    payTo: ${JSON.stringify(payTo)}  # your address, which only receives: the gateway never has its key
    rpcUrl: "\${RPC_URL:-https://sepolia.base.org}"  # a node: every payment is checked on the chain`,
  base: ({ payTo = `\${PAY_TO}` }) => `    network: base  # real money, through Coinbase's facilitator
    allowMainnet: true
    payTo: ${JSON.stringify(payTo)}  # your address, which only receives: the gateway never has its key
    rpcUrl: "\${RPC_URL}"  # of a provider: every payment is checked on the chain
    facilitator:  # sends the payments
      mode: remote
      url: https://api.cdp.coinbase.com/platform/v2/x402
      auth: { type: cdp, keyId: "\${file:/run/secrets/cdp-key-id}", keySecret: "\${file:/run/secrets/cdp-key-secret}" }`,
};
