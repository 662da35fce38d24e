/**
 * The document behind its check: what may be left out and has a default is there. Written by
 * make format from schemas/config.schema.json, whose texts tell what each key means.
 */

import type { Json, JsonObject } from '../../json/json.ts';

/** A resource as a file has it. */
export type WrittenResource = Partial<Omit<ResourceDocument, 'backend'>> &
  Pick<ResourceDocument, 'name' | 'pricing'> & {
    readonly backend: Partial<ResourceDocument['backend']> & Pick<ResourceDocument['backend'], 'method' | 'path'>;
  };

export interface ConfigDocument {
  readonly version: 1;
  readonly merchant: {
    readonly id: string;
    readonly name: string;
    readonly iconUrl?: string;
    readonly publicBaseUrl: string;
    readonly formerBaseUrls: readonly string[];
  };
  readonly server: {
    readonly host: string;
    readonly port: number;
    readonly adminToken?: string;
    readonly adminTokenNext?: string;
    readonly allowedOrigins: readonly string[];
    readonly allowedHosts?: readonly string[];
    readonly trustProxy: number;
    readonly maxHeadBytes: number;
  };
  readonly management: { readonly host: string; readonly port: number };
  readonly backend: {
    readonly baseUrl: string;
    readonly allowNonLoopback: boolean;
    readonly headers: Readonly<Record<string, string>>;
    readonly probe?: { readonly path: string };
    readonly passthrough?: {
      readonly enabled: boolean;
      readonly include?: readonly string[];
      readonly exclude?: readonly string[];
      readonly allow: readonly string[];
      readonly allowHeaders: readonly string[];
      readonly websocket: boolean;
      readonly idleTimeoutMs: number;
      readonly preserveHost: boolean;
    };
    readonly paymentContext: boolean;
    readonly originHeaders: readonly ('accept' | 'authorization' | 'cookie')[];
  };
  readonly storage: {
    readonly redis?: {
      readonly url?: string;
      readonly sentinel?: {
        readonly name: string;
        readonly nodes: readonly string[];
        readonly username?: string;
        readonly password?: string;
      };
      readonly cluster?: { readonly nodes: readonly string[] };
      readonly username?: string;
      readonly password?: string;
      readonly tls?: { readonly ca?: string; readonly servername?: string };
      readonly replicas: number;
    };
    readonly sqlite?: { readonly path: string };
    readonly sealing?: { readonly keys: readonly { readonly id: string; readonly key: string }[] };
    readonly replicas: number;
    readonly eventsMaxLength: number;
    readonly receiptsMaxLength: number;
    readonly receiptsMaxAgeDays?: number;
  };
  readonly protocols: {
    readonly http: { readonly enabled: boolean };
    readonly mcp: { readonly enabled: boolean; readonly mountPath: string };
    readonly a2a: {
      readonly enabled: boolean;
      readonly mountPath: string;
      readonly errorProfile: 'gateway' | 'spec';
      readonly description?: string;
      readonly provider?: { readonly organization: string; readonly url: string };
      readonly documentationUrl?: string;
      readonly iconUrl?: string;
      readonly signingKey?: string;
    };
    readonly acp: {
      readonly enabled: boolean;
      readonly mountPath: string;
      readonly auth: {
        readonly token?: string;
        readonly clients?: readonly { readonly id: string; readonly tokens: readonly string[] }[];
      };
      readonly backend: {
        readonly baseUrl?: string;
        readonly headers?: Readonly<Record<string, string>>;
        readonly scopesByClient: boolean;
        readonly operations: {
          readonly createCheckoutSession?: CheckoutOperationDocument;
          readonly updateCheckoutSession?: CheckoutOperationDocument;
          readonly getCheckoutSession?: CheckoutOperationDocument;
          readonly completeCheckoutSession?: CheckoutOperationDocument;
          readonly cancelCheckoutSession?: CheckoutOperationDocument;
        };
      };
      readonly idempotency: {
        readonly retentionHours: number;
        readonly secret?: string;
        readonly merchant: 'derived-key' | 'read-back-only';
        readonly sessionLock: boolean;
      };
      readonly discovery: {
        readonly documentationUrl?: string;
        readonly supportedCurrencies?: readonly string[];
        readonly supportedLocales?: readonly string[];
        readonly interventionTypes?: readonly ('3ds' | 'biometric' | 'address_verification')[];
      };
      readonly limits: { readonly maxInFlight: number };
      readonly sessionDays: number;
      readonly acceptLineItemQuantity: boolean;
      readonly strictSemantics: boolean;
      readonly authenticationErrors: boolean;
    };
  };
  readonly payments: {
    readonly blockedPayers: readonly string[] | string;
    readonly x402?: X402Document | readonly X402Document[];
  };
  readonly authorization: {
    readonly ap2: {
      readonly enabled: boolean;
      readonly audience?: string;
      readonly clockSkewSeconds: number;
      readonly maxPresentationAgeSeconds: number;
      readonly maxEnvelopeBytes: number;
      readonly algorithms: readonly ('ES256' | 'EdDSA' | 'ES384' | 'ES256K')[];
      readonly currencies: Readonly<Record<string, number>>;
      readonly checkout?: {
        readonly signingKey: string;
        readonly kid?: string;
        readonly ttlSeconds: number;
        readonly alsoTrust: readonly JsonObject[];
      };
      readonly policy: { readonly paymentMandate: 'optional' | 'required'; readonly bindPaymentNonce: boolean };
      readonly issuers?: readonly {
        readonly id: string;
        readonly keys?: readonly JsonObject[];
        readonly jwksUri?: string;
        readonly x5cRoots?: readonly string[];
        readonly credentialVct?: readonly string[];
        readonly allowKidOnly: boolean;
      }[];
    };
  };
  readonly signing?: { readonly key: string; readonly alsoPublish: readonly JsonObject[]; readonly offers: boolean };
  readonly resources?: Readonly<Record<string, ResourceDocument>>;
  readonly publish?: readonly ('index' | 'openapi' | 'llms' | 'x402')[];
  readonly limits: {
    readonly maxInFlight: number;
    readonly maxStreams: number;
    readonly maxPassthrough: number;
    readonly maxUpgrades: number;
    readonly maxBufferedBytes: number;
    readonly unpaidWork: {
      readonly perResource: number;
      readonly perNetwork: number;
      readonly all: number;
      readonly windowSeconds: number;
    };
    readonly rate?: { readonly perSecond: number; readonly burst?: number; readonly by: 'ip' };
  };
}

export interface X402Document {
  readonly network: string;
  readonly asset: string;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  readonly currency?: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly offered: boolean;
  readonly rpcUrl?: string;
  readonly rpcUrls?: readonly string[];
  readonly allowMainnet: boolean;
  readonly localSignatureCheck: boolean;
  readonly confirm?: 'receipt' | 'facilitator';
  readonly confirmations: number;
  readonly buyerTokenSecrets?: readonly string[];
  readonly keepAnswerSeconds: number;
  readonly payToExclusive: boolean;
  readonly onStoreLoss: 'deliver' | 'refuse';
  readonly facilitator:
    | {
        readonly mode: 'remote';
        readonly url: string;
        readonly auth?:
          | { readonly type: 'none' }
          | { readonly type: 'bearer'; readonly token: string }
          | { readonly type: 'cdp'; readonly keyId: string; readonly keySecret: string };
        readonly fallbacks?: readonly {
          readonly url: string;
          readonly auth?:
            | { readonly type: 'none' }
            | { readonly type: 'bearer'; readonly token: string }
            | { readonly type: 'cdp'; readonly keyId: string; readonly keySecret: string };
        }[];
      }
    | { readonly mode: 'local'; readonly privateKey: string };
}

export interface ResourceDocument {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly mimeType: string;
  readonly tags?: readonly string[];
  readonly backend: {
    readonly method: 'GET' | 'DELETE' | 'POST' | 'PUT' | 'PATCH';
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly inputBindings?: {
      readonly path?: readonly string[];
      readonly query?: readonly string[];
      readonly body?: readonly string[] | string;
      readonly styles?: Readonly<Record<string, 'comma' | 'space' | 'pipe' | 'deepObject' | 'json'>>;
    };
    readonly contentType: string;
    readonly timeoutMs: number;
    readonly maxResponseBytes: number;
    readonly idempotent: boolean;
    readonly safeUnpaid: boolean;
    readonly relayStatuses:
      | readonly number[]
      | { readonly sold?: readonly number[]; readonly unpaid?: readonly number[] };
    readonly strictQuery: boolean;
  };
  readonly pricing:
    | { readonly type: 'free' }
    | {
        readonly type: 'fixed';
        readonly amount?: string;
        readonly currency?: string;
        readonly amounts?: Readonly<Record<string, string>>;
        readonly settle?: 'before' | 'after';
        readonly by?: {
          readonly unit?: { readonly pointer: string; readonly min: string; readonly max: string };
          readonly tier?: {
            readonly pointer: string;
            readonly steps: readonly { readonly upTo: number; readonly amount: string }[];
          };
          readonly choice?: { readonly pointer: string; readonly amounts: Readonly<Record<string, string>> };
          readonly quote?: {
            readonly method: 'POST';
            readonly path: string;
            readonly min: string;
            readonly max: string;
          };
        };
      };
  readonly expose: readonly ('http' | 'mcp' | 'a2a' | 'origin')[];
  readonly payments?: readonly 'x402'[];
  readonly authorization: { readonly required: readonly 'ap2'[] };
  readonly bazaar?: { readonly example: JsonObject; readonly output?: Json };
}

export interface CheckoutOperationDocument {
  readonly path?: string;
  readonly timeoutMs?: number;
}
