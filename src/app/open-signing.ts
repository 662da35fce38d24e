/** Opens the signers for buyers, if the configuration has a key for them. */

import type { GatewayConfig } from '../config/document/config.ts';
import { hostKey, signingKey } from '../crypto/signing-key.ts';
import {
  createPaymentContext,
  createPurchaseSigner,
  type PurchaseSigner,
} from '../payments/delivery/purchase-signer.ts';
import type { PaymentContext } from '../payments/settlement/terms.ts';
import type { OfferSigner } from '../payments/x402/wire/offers.ts';
import { signedOffers } from '../payments/x402/wire/payment-response.ts';
import type { Log } from '../telemetry/log/log.ts';

export interface OpenSigning {
  readonly purchases: PurchaseSigner;
  /** Undefined: offers are not signed. */
  readonly offers: OfferSigner | undefined;
  /** Undefined: the backend gets no JWT. */
  readonly contextOf: PaymentContext | undefined;
}

/** Undefined where nothing is signed. */
export function openSigning(
  {
    signing,
    merchant: { publicBaseUrl },
    backend,
    resources,
  }: Pick<GatewayConfig, 'signing' | 'merchant' | 'backend' | 'resources'>,
  log: Pick<Log, 'error'>,
): OpenSigning | undefined {
  if (signing === undefined) return undefined;
  const key = hostKey(signing.key, publicBaseUrl);
  const onFailure = (err: unknown): void => log.error({ err }, 'nothing was signed for a buyer');
  const sign: OfferSigner['sign'] = (accepts, resourceUrl, validUntil) => {
    try {
      return signedOffers(key, accepts, resourceUrl, validUntil);
    } catch (cause) {
      onFailure(cause);
      return undefined;
    }
  };
  return {
    purchases: createPurchaseSigner(key, publicBaseUrl, onFailure),
    contextOf: backend.paymentContext
      ? createPaymentContext(signingKey(signing.key), {
          issuer: publicBaseUrl,
          audience: backend.origin + backend.pathPrefix,
          timeoutMs: Math.max(0, ...resources.map((resource) => resource.backend.timeoutMs)),
        })
      : undefined,
    offers: signing.offers ? { sign, now: Date.now } : undefined,
  };
}
