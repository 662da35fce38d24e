/** What the configuration means, in words, for `acg validate` and the first log line. */

import type { GatewayConfig } from './document/config.ts';

/** How many issuers are trusted, and how many resources need a mandate. */
export function mandatesSummary({
  authorization: { ap2 },
  resources,
}: Pick<GatewayConfig, 'authorization' | 'resources'>): string {
  if (ap2 === undefined) return 'no mandates';
  const asking = resources.filter(({ authorization }) => authorization.includes('ap2')).length;
  return `ap2 mandates for ${asking} of ${resources.length} resources (issuers: ${ap2.issuers.length})`;
}

/** What happens to a payment that the chain shows and the store has lost. */
export function storeLossSummary({ x402 }: Pick<GatewayConfig, 'x402'>): string {
  if (x402 === undefined) return 'no payments';
  const { onStoreLoss, payToExclusive, rpcUrls, facilitator } = x402;
  if (onStoreLoss === 'refuse') return 'refused with 409 (onStoreLoss: refuse)';
  if (rpcUrls.length === 0) return 'refused with 409, because there is no rpcUrl to ask the chain through';
  if (payToExclusive) return 'delivered once, because payTo is this store’s alone (payToExclusive: true)';
  const advice =
    'a merchant with one store, who sells nothing else for this payTo, sets payments.x402.payToExclusive: true';
  return facilitator.mode === 'local'
    ? `delivered once to the buyer whose token is in the calldata of our transaction, else refused with 409; ${advice}`
    : `refused with 409, because another store or seller may use payTo; ${advice}`;
}

/** The enabled adapters, their paths, and how many resources each offers. */
export function adaptersSummary({ protocols, resources }: Pick<GatewayConfig, 'protocols' | 'resources'>): string {
  const adapters = (['http', 'mcp', 'a2a'] as const)
    .filter((name) => protocols[name].enabled)
    .map((name) => {
      const offered = resources.filter(({ exposedVia }) => exposedVia.includes(name)).length;
      return `${name}${name === 'http' ? '' : ` at ${protocols[name].mountPath}`} (${offered})`;
    });
  const { acp } = protocols;
  if (!acp.enabled) return adapters.join(', ');
  const clients = acp.clients.length === 1 ? '1 client' : `${acp.clients.length} clients`;
  return [...adapters, `acp at ${acp.mountPath} (checkout for ${clients})`].join(', ');
}
