import type { GatewayConfig } from './document/config.ts';

/** Whose mandates are accepted, and how many resources need one; for people. */
export function mandatesSummary({
  authorization: { ap2 },
  resources,
}: Pick<GatewayConfig, 'authorization' | 'resources'>): string {
  if (ap2 === undefined) return 'no mandates';
  const asking = resources.filter(({ authorization }) => authorization.includes('ap2')).length;
  return `ap2 mandates for ${asking} of ${resources.length} resources (issuers: ${ap2.issuers.length})`;
}

/**
 * What a payment gets that the chain shows and the store has lost; for people, in `validate` and in
 * the first line of the log.
 */
export function storeLossSummary({ x402 }: Pick<GatewayConfig, 'x402'>): string {
  if (x402 === undefined) return 'no payments';
  const { onStoreLoss, payToExclusive, rpcUrl, facilitator } = x402;
  if (onStoreLoss === 'refuse') return 'refused with 409 (onStoreLoss: refuse)';
  if (rpcUrl === undefined) return 'refused with 409, because there is no rpcUrl to ask the chain through';
  if (payToExclusive) return 'delivered once, because payTo is this store’s alone (payToExclusive: true)';
  const advice =
    'a merchant with one store, who sells nothing else for this payTo, sets payments.x402.payToExclusive: true';
  return facilitator.mode === 'local'
    ? `delivered once to the buyer whose token is in the calldata of our transaction, else refused with 409; ${advice}`
    : `refused with 409, because another store or seller may use payTo; ${advice}`;
}

/**
 * Which adapters are there, where, and how many resources each offers; for people, in `validate`
 * and in the first line of the log.
 */
export function frontsSummary({ protocols, resources }: Pick<GatewayConfig, 'protocols' | 'resources'>): string {
  const fronts = (['http', 'mcp', 'a2a'] as const)
    .filter((front) => protocols[front].enabled)
    .map((front) => {
      const offered = resources.filter(({ exposedVia }) => exposedVia.includes(front)).length;
      return `${front}${front === 'http' ? '' : ` at ${protocols[front].mountPath}`} (${offered})`;
    });
  const { acp } = protocols;
  const checkout = acp.enabled ? [`acp at ${acp.mountPath} (checkout for ${clientsOf(acp.clients.length)})`] : [];
  return [...fronts, ...checkout].join(', ');
}

function clientsOf(count: number): string {
  return count === 1 ? '1 client' : `${count} clients`;
}
