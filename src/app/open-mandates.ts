/** Opens the service that checks and uses mandates, where the configuration accepts them. */

import type { GatewayConfig } from '../config/document/config.ts';
import type { MandateRegister } from '../mandates/register/register.ts';
import { needsMandate } from '../payments/x402/wire/payment-required.ts';
import type { OpenMandates } from './open-ap2.ts';

/** Opens the mandates of configurations, over what all of them share. */
interface MandateOpener {
  /**
   * Undefined where no mandates are accepted: the pipeline then has no middleware for them.
   * `before`: of the present configuration. Issuers that stay keep the keys that were fetched.
   */
  open(config: Pick<GatewayConfig, 'authorization' | 'resources'>, before?: OpenMandates): OpenMandates | undefined;
  /** Fetches no more keys. */
  close(): Promise<void>;
}

/**
 * What outlives a configuration. AP2 is loaded where the configuration of the start accepts
 * mandates: to accept them later needs a restart.
 */
export async function createMandateOpener(
  { authorization }: Pick<GatewayConfig, 'authorization'>,
  register: MandateRegister,
): Promise<MandateOpener> {
  const loaded = authorization.ap2 === undefined ? undefined : await import('./open-ap2.ts');
  const opener = loaded?.createAp2Opener(register);
  return {
    open({ authorization: { ap2 }, resources }, before) {
      if (ap2 !== undefined && opener !== undefined) return opener.open(ap2, before);
      // The configuration refuses this. Without the check a mistake would sell without mandates.
      if (resources.some(needsMandate)) throw new Error('a resource requires mandates, and none are accepted');
      return undefined;
    },
    close: async () => opener?.close(),
  };
}
