/** Opens the service that checks and uses mandates, where the configuration accepts them. */

import type { GatewayConfig } from '../config/document/config.ts';
import type { MandateRegister } from '../mandates/register.ts';
import { needsMandate } from '../payments/x402/wire/challenge.ts';
import type { OpenMandates } from './open-ap2.ts';

/**
 * Makes the opener of mandates, which all configurations share. AP2 is loaded where the
 * configuration of the start accepts mandates: to accept them later needs a restart.
 */
export async function createMandateOpener(
  { authorization }: Pick<GatewayConfig, 'authorization'>,
  register: MandateRegister,
) {
  const loaded = authorization.ap2 === undefined ? undefined : await import('./open-ap2.ts');
  const opener = loaded?.createAp2Opener(register);
  return {
    /**
     * Undefined where no mandates are accepted: the pipeline then has no middleware for them.
     * `before`: of the present configuration. Issuers that stay keep the keys that were fetched.
     */
    open(
      { authorization: { ap2 }, resources }: Pick<GatewayConfig, 'authorization' | 'resources'>,
      before?: OpenMandates,
    ): OpenMandates | undefined {
      if (ap2 !== undefined && opener !== undefined) return opener.open(ap2, before);
      // The configuration refuses this. Without the check a mistake would sell without mandates.
      if (resources.some(needsMandate)) throw new Error('a resource requires mandates, and none are accepted');
      return undefined;
    },
    /** Fetches no more keys. */
    close: async () => opener?.close(),
  };
}
