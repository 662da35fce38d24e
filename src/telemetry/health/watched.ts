/** The components that readiness depends on, as the monitor looks at them. */

import type { IssuerTrust } from '../../mandates/ap2/trust/issuers.ts';
import type { PaymentRail } from '../../payments/x402/wire/types.ts';
import type { Store } from '../../store/documents/store.ts';
import type { Watched } from './monitor.ts';

/** The store, the rail if a resource has a price, the trusted issuers, and the enabled adapters. */
export function watched(parts: {
  readonly config: { readonly protocols: Readonly<Record<string, { readonly enabled: boolean }>> };
  readonly store: Store;
  readonly rail: PaymentRail | undefined;
  /** Undefined: no mandates are accepted. */
  readonly trust?: Pick<IssuerTrust, 'check'> | undefined;
}): {
  readonly store: Watched;
  readonly paymentProviders: readonly Watched[];
  readonly authorizationProviders: readonly Watched[];
  readonly adapters: readonly string[];
} {
  const { config, store, rail, trust } = parts;
  const storeCheck: Watched = {
    name: store.name,
    kind: 'store',
    async look() {
      const health = await store.check();
      return health.status === 'ok' ? { found: 'ok' } : { found: health.status, cause: health.cause };
    },
  };
  const railCheck = (x402: PaymentRail): Watched => ({
    name: 'x402',
    kind: 'payment-provider',
    async look() {
      return (await x402.check()) ?? { found: 'ok' };
    },
  });
  const trustCheck = ({ check }: Pick<IssuerTrust, 'check'>): Watched => ({
    name: 'ap2',
    kind: 'authorization-provider',
    look: check,
  });
  return {
    store: storeCheck,
    paymentProviders: rail === undefined ? [] : [railCheck(rail)],
    authorizationProviders: trust === undefined ? [] : [trustCheck(trust)],
    adapters: Object.entries(config.protocols)
      .filter(([, protocol]) => protocol.enabled)
      .map(([name]) => name),
  };
}
