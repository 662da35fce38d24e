/**
 * The document as schemas/config.schema.json admits it, before defaults. The schema is
 * authoritative; these types repeat it.
 */

import type { BackendRequest, RelayStatuses } from '../../backend/exchange.ts';
import type { Operation } from '../../checkouts/operations.ts';
import type { AcpDiscoverySettings, IdempotencySettings } from '../../checkouts/settings.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import type { FacilitatorAuth } from '../../payments/x402/wire/settings.ts';
import type { PublishedName } from '../../resources/published.ts';
import type { OriginHeader } from '../../resources/settings.ts';
import type { PairStyle } from '../../resources/value-pairs.ts';

export interface ConfigDocument {
  readonly version: 1;
  readonly merchant: {
    readonly id: string;
    readonly name: string;
    readonly publicBaseUrl: string;
    readonly formerBaseUrls?: readonly string[];
  };
  readonly server?: {
    readonly host?: string;
    readonly port?: number;
    readonly adminToken?: string;
    readonly adminTokenNext?: string;
    readonly allowedOrigins?: readonly string[];
    readonly allowedHosts?: readonly string[];
    readonly trustProxy?: number;
    readonly maxHeadBytes?: number;
  };
  readonly management?: { readonly host?: string; readonly port?: number };
  readonly backend: {
    readonly baseUrl: string;
    readonly allowNonLoopback?: boolean;
    readonly headers?: HeaderMap;
    readonly probe?: { readonly path: string };
    readonly passthrough?: PassthroughDocument;
    readonly originHeaders?: readonly OriginHeader[];
  };
  readonly storage: {
    readonly redis?: RedisDocument;
    readonly sqlite?: { readonly path: string };
    readonly replicas?: number;
    readonly eventsMaxLength?: number;
    readonly receiptsMaxLength?: number;
    readonly receiptsMaxAgeDays?: number;
    readonly sealing?: { readonly keys?: readonly SealingKeyDocument[] };
  };
  readonly protocols?: {
    readonly http?: { readonly enabled?: boolean };
    readonly mcp?: MountDocument;
    readonly a2a?: A2aDocument;
    readonly acp?: AcpDocument;
  };
  readonly payments?: { readonly x402?: X402Document };
  readonly authorization?: { readonly ap2?: Ap2Document };
  readonly signing?: SigningDocument;
  readonly resources?: Readonly<Record<string, ResourceDocument>>;
  readonly publish?: readonly PublishedName[];
  readonly limits?: {
    readonly maxInFlight?: number;
    readonly maxStreams?: number;
    readonly maxPassthrough?: number;
    readonly maxUpgrades?: number;
    readonly maxBufferedBytes?: number;
    readonly unpaidWork?: {
      readonly perResource?: number;
      readonly perNetwork?: number;
      readonly all?: number;
      readonly windowSeconds?: number;
    };
    readonly rate?: RateDocument;
  };
}

export interface PassthroughDocument {
  readonly enabled: boolean;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly allow?: readonly string[];
  readonly allowHeaders?: readonly string[];
  readonly websocket?: boolean;
  readonly idleTimeoutMs?: number;
  readonly preserveHost?: boolean;
}

interface RateDocument {
  readonly perSecond?: number;
  readonly burst?: number;
  readonly by?: 'ip';
}

export interface RedisDocument {
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
  readonly replicas?: number;
}

export type HeaderMap = Readonly<Record<string, string>>;

interface MountDocument {
  readonly enabled?: boolean;
  readonly mountPath?: string;
}

interface A2aDocument extends MountDocument {
  readonly errorProfile?: 'gateway' | 'spec';
  readonly description?: string;
  readonly provider?: { readonly organization: string; readonly url: string };
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  readonly signingKey?: string;
}

export interface X402Document {
  readonly network: string;
  readonly asset: string;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  readonly currency?: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds?: number;
  readonly rpcUrl?: string;
  readonly rpcUrls?: readonly string[];
  readonly allowMainnet?: boolean;
  readonly localSignatureCheck?: boolean;
  readonly confirm?: 'receipt' | 'facilitator';
  readonly confirmations?: number;
  readonly buyerTokenSecrets?: readonly string[];
  readonly keepAnswerSeconds?: number;
  readonly payToExclusive?: boolean;
  readonly onStoreLoss?: 'deliver' | 'refuse';
  readonly facilitator: FacilitatorDocument;
}

export interface Ap2Document {
  readonly enabled?: boolean;
  readonly audience?: string;
  readonly clockSkewSeconds?: number;
  readonly maxPresentationAgeSeconds?: number;
  readonly maxEnvelopeBytes?: number;
  readonly algorithms?: readonly ('ES256' | 'EdDSA' | 'ES384' | 'ES256K')[];
  readonly currencies?: Readonly<Record<string, number>>;
  readonly checkout?: {
    readonly signingKey: string;
    readonly kid?: string;
    readonly ttlSeconds?: number;
    readonly alsoTrust?: readonly JsonObject[];
  };
  readonly policy?: { readonly paymentMandate?: 'optional' | 'required'; readonly bindPaymentNonce?: boolean };
  readonly issuers?: readonly IssuerDocument[];
}

export interface IssuerDocument {
  readonly id: string;
  readonly keys?: readonly JsonObject[];
  readonly jwksUri?: string;
  readonly x5cRoots?: readonly string[];
  readonly credentialVct?: readonly string[];
  readonly allowKidOnly?: boolean;
}

interface SigningDocument {
  readonly key: string;
  readonly alsoPublish?: readonly JsonObject[];
  readonly offers?: boolean;
}

export interface EndpointDocument {
  readonly url: string;
  readonly auth?: FacilitatorAuth;
}

export type FacilitatorDocument =
  | (EndpointDocument & { readonly mode: 'remote'; readonly fallbacks?: readonly EndpointDocument[] })
  | { readonly mode: 'local'; readonly privateKey: string };

export interface ResourceDocument {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly mimeType?: string;
  readonly backend: {
    readonly method: BackendRequest['method'];
    readonly path: string;
    readonly headers?: HeaderMap;
    readonly inputBindings?: {
      readonly path?: readonly string[];
      readonly query?: readonly string[];
      readonly body?: readonly string[] | string;
      readonly styles?: Readonly<Record<string, PairStyle>>;
    };
    readonly contentType?: string;
    readonly timeoutMs?: number;
    readonly maxResponseBytes?: number;
    readonly idempotent?: boolean;
    readonly safeUnpaid?: boolean;
    readonly relayStatuses?: readonly number[] | { readonly [Kind in keyof RelayStatuses]?: readonly number[] };
    readonly strictQuery?: boolean;
  };
  readonly pricing:
    | { readonly type: 'free' }
    | {
        readonly type: 'fixed';
        readonly amount: string;
        readonly currency: string;
        readonly settle?: 'before' | 'after';
      };
  readonly expose?: readonly ('http' | 'mcp' | 'a2a' | 'origin')[];
  readonly payments?: readonly 'x402'[];
  readonly authorization?: { readonly required?: readonly 'ap2'[] };
  readonly bazaar?: { readonly example: JsonObject; readonly output?: Json };
}

/** `key`: base64 or base64url of 32 bytes. */
export interface SealingKeyDocument {
  readonly id: string;
  readonly key: string;
}

/** `protocols.acp`, before defaults. `deriveAcp` decides what it must have once it is enabled. */
export interface AcpDocument {
  readonly enabled?: boolean;
  readonly mountPath?: string;
  readonly auth?: { readonly token?: string; readonly clients?: readonly AcpClientDocument[] };
  readonly backend?: {
    readonly baseUrl?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly scopesByClient?: boolean;
    readonly operations?: Readonly<Partial<Record<Operation, { readonly path?: string; readonly timeoutMs?: number }>>>;
  };
  readonly idempotency?: {
    readonly retentionHours?: number;
    readonly secret?: string;
    readonly merchant?: IdempotencySettings['merchant'];
    readonly sessionLock?: boolean;
  };
  readonly discovery?: Partial<AcpDiscoverySettings>;
  readonly limits?: { readonly maxInFlight?: number };
  readonly sessionDays?: number;
  readonly acceptLineItemQuantity?: boolean;
  readonly strictSemantics?: boolean;
  readonly authenticationErrors?: boolean;
}

interface AcpClientDocument {
  readonly id: string;
  readonly tokens: readonly string[];
}
