/** Opens the service that checks and uses mandates, where the configuration accepts them. */

import type { GatewayConfig } from '../config/document/config.ts';
import type { IssuerTrust } from '../mandates/ap2/trust/issuers.ts';
import type { MandateService } from '../mandates/mandate-service.ts';
import type { MandateRegister } from '../mandates/register/register.ts';
import { needsMandate } from '../payments/x402/wire/payment-required.ts';

export interface OpenMandates {
  readonly service: MandateService;
  /** What readiness looks at. */
  readonly trust: IssuerTrust;
  /** Fetches no more keys. */
  close(): Promise<void>;
}

/** Undefined where no mandates are accepted: the pipeline then has no middleware for them. */
export async function openMandates(
  { authorization, resources }: Pick<GatewayConfig, 'authorization' | 'resources'>,
  register: MandateRegister,
): Promise<OpenMandates | undefined> {
  const { ap2 } = authorization;
  // Loaded where mandates are accepted alone.
  if (ap2 !== undefined) return (await import('./open-ap2.ts')).openAp2(ap2, register);
  // The configuration refuses this. Without the check a mistake would sell without mandates.
  if (resources.some(needsMandate)) throw new Error('a resource requires mandates, and none are accepted');
  return undefined;
}
