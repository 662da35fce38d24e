import type { GatewayConfig } from './config.ts';

/** Which fronts are there, where, and how many resources each offers; for people, in `validate` and in the first line of the log. */
export function frontsSummary({ protocols, resources }: Pick<GatewayConfig, 'protocols' | 'resources'>): string {
  const fronts = (['http', 'mcp', 'a2a'] as const)
    .filter((front) => protocols[front].enabled)
    .map((front) => {
      const offered = resources.filter(({ exposedVia }) => exposedVia.includes(front)).length;
      return `${front}${front === 'http' ? '' : ` at ${protocols[front].mountPath}`} (${offered})`;
    });
  return fronts.join(', ');
}
