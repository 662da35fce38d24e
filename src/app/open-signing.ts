/** Opens the signers for buyers, if the configuration has a key for them. */

import type { GatewayConfig } from '../config/document/config.ts';
import { hostKey } from '../crypto/signing-key.ts';
import { createPurchaseSigner, type PurchaseSigner } from '../payments/delivery/purchase-signer.ts';
import type { OfferSigner } from '../payments/x402/wire/offers.ts';
import { signedOffer } from '../payments/x402/wire/payment-response.ts';
import type { Log } from '../telemetry/log/log.ts';

export interface OpenSigning {
  readonly purchases: PurchaseSigner;
  /** Undefined: offers are not signed. */
  readonly offers: OfferSigner | undefined;
}

/** Undefined where nothing is signed. */
export function openSigning(
  { signing, merchant: { publicBaseUrl } }: Pick<GatewayConfig, 'signing' | 'merchant'>,
  log: Pick<Log, 'error'>,
): OpenSigning | undefined {
  if (signing === undefined) return undefined;
  const key = hostKey(signing.key, publicBaseUrl);
  const onFailure = (err: unknown): void => log.error({ err }, 'nothing was signed for a buyer');
  const sign: OfferSigner['sign'] = (requirements, resourceUrl, validUntil) => {
    try {
      return signedOffer(key, requirements, resourceUrl, validUntil);
    } catch (cause) {
      onFailure(cause);
      return undefined;
    }
  };
  return {
    purchases: createPurchaseSigner(key, publicBaseUrl, onFailure),
    offers: signing.offers ? { sign, now: Date.now } : undefined,
  };
}
