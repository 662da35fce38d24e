import type { JsonObject } from '../../../json/types.ts';

/** The call as the gateway resolved it: what a mandate must be for. Nothing of it was taken from the mandate. */
export interface Purchase {
  readonly resourceId: string;
  /** The resource's name, the title of the one line item. */
  readonly title: string;
  /** As received, without the reserved members. */
  readonly input: JsonObject;
  /** Display units as configured; `0` for a free resource. */
  readonly price: { readonly amount: string; readonly currency: string };
  /** Undefined for a free resource: the method of its checkout is `none`. */
  readonly payment: PurchasePayment | undefined;
}

/** How the purchase is paid. Addresses in any case. */
export interface PurchasePayment {
  readonly method: 'x402';
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** From the verified proof; undefined while a challenge is made. */
  readonly payer: string | undefined;
  /** The EIP-3009 nonce of the verified proof, `0x` and 64 hexadecimal digits. */
  readonly nonce: string | undefined;
}
