/**
 * The JSON shapes of x402 v2 (x402 2), scheme `exact` on EVM with EIP-3009. Amounts are decimal
 * strings in base units, times decimal strings in Unix seconds.
 */

import type * as rails from '../../rail.ts';

export interface PaymentRequirements {
  readonly scheme: 'exact';
  /** CAIP-2, `eip155:<chainId>`. */
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** The offer as a client repeats it. `extra` undefined: the client left it out. */
export type EchoedRequirements = Omit<PaymentRequirements, 'extra'> & {
  readonly extra: PaymentRequirements['extra'] | undefined;
};

export interface ResourceInfo {
  readonly url: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Of the merchant: 1 to 32 printable ASCII characters, as a tag. */
  readonly serviceName?: string;
  /** One to five. */
  readonly tags?: readonly string[];
  readonly iconUrl?: string;
}

/** Members of a resource that catalogues show beside its description. */
export type Labels = Pick<ResourceInfo, 'serviceName' | 'tags' | 'iconUrl'>;

export interface PaymentRequired {
  readonly x402Version: 2;
  readonly error?: string;
  readonly resource: ResourceInfo;
  readonly accepts: readonly PaymentRequirements[];
  readonly extensions: Readonly<Record<string, Extension>>;
}

/** A declaration of an offer beside its money. `schema` describes `info`; a client echoes both. */
export interface Extension {
  readonly info: object;
  readonly schema: object;
  /** Of `bazaar` alone: a path with `:name` for each parameter. */
  readonly routeTemplate?: string;
}

/** How one resource is called; undefined where it is not sold that way. */
export interface BazaarForms {
  /** Its description, the same at every URL. */
  readonly about: Omit<ResourceInfo, 'url'>;
  /** By its invoke URL. */
  readonly invoke: Extension | undefined;
  /** At its own address. */
  readonly inPlace: Extension | undefined;
  /** As a tool of the MCP endpoint at this URL. */
  readonly tool: { readonly extension: Extension; readonly url: string } | undefined;
}

export interface Eip3009Authorization {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
}

export interface PaymentPayload {
  readonly x402Version: 2;
  readonly resource?: ResourceInfo;
  readonly accepted: EchoedRequirements;
  readonly payload: { readonly signature: string; readonly authorization: Eip3009Authorization };
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** PAYMENT-RESPONSE (specification 2, contract 4.2). `amount` in display units. */
export interface PaymentResponse {
  readonly success: boolean;
  readonly transaction: string;
  readonly network: string;
  /** `pending`: the money may have moved. */
  readonly status: 'settled' | 'refused' | 'pending';
  readonly provider: 'x402';
  readonly amount: string;
  readonly currency: string;
  readonly payer?: string;
  readonly receiptId?: string;
  readonly requestId?: string;
  readonly errorReason?: string;
  /** A signed receipt, where one is given. */
  readonly extensions?: Readonly<Record<string, Extension>>;
}

/** Header names of the HTTP transport, lower case as Node gives them. */
export const PAYMENT_SIGNATURE = 'payment-signature';
export const PAYMENT_REQUIRED = 'payment-required';
export const PAYMENT_RESPONSE = 'payment-response';

/** The extension with signed offers and signed receipts. */
export const OFFER_RECEIPT = 'offer-receipt';

/** A proof of x402 that passed the local checks. */
export type Proof = rails.Proof<PaymentPayload>;

/** The port of a rail, for the documents of x402. */
export type PaymentRail = rails.PaymentRail<PaymentPayload, PaymentRequirements>;

type WalletRefusal = 'invalid_exact_evm_payload_signature' | 'eip6492_factory_not_allowed';

export type WalletVerdict =
  /** `signature`: as the asset takes it. */
  | { readonly kind: 'signed'; readonly signature: string }
  | { readonly kind: 'refused'; readonly reason: WalletRefusal };

/** Asks a contract whether it signed, by simulation: nothing is sent or changed. */
export interface WalletSignatures {
  /** All 0x-hex. @throws when the node does not answer */
  check(wallet: string, digest: string, signature: string): Promise<WalletVerdict>;
}

/** Logs when a fault of a node begins and when it ends. */
export interface FaultLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}
