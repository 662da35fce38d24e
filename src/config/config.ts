import type { Channel } from '../events/event.ts';
import type { JsonObject } from '../json/types.ts';
import type { BackendRequest } from '../merchant/types.ts';

export type DeploymentMode = 'local' | 'testnet' | 'mainnet';

/** The configuration after expansion, validation and derivation: code behind it never checks again. */
export interface GatewayConfig {
  readonly merchant: {
    readonly id: string;
    readonly name: string /** No trailing slash. */;
    readonly publicBaseUrl: string;
  };
  readonly server: {
    readonly host: string;
    readonly port: number;
    /** Current and next operator token; empty: operator routes do not exist. */
    readonly adminTokens: readonly string[];
    /** Lower-cased exact origins. */
    readonly allowedOrigins: readonly string[];
    /** Undefined: no Host check. */
    readonly allowedHosts: readonly string[] | undefined;
    readonly trustProxy: number;
  };
  readonly management: { readonly host: string; readonly port: number };
  readonly backend: { readonly origin: string; readonly headers: Readonly<Record<string, string>> };
  readonly storage: StorageConfig;
  readonly protocols: {
    readonly http: { readonly enabled: boolean };
    readonly mcp: { readonly enabled: boolean; readonly mountPath: string };
    readonly a2a: { readonly enabled: boolean; readonly mountPath: string };
    readonly acp: { readonly enabled: boolean; readonly mountPath: string };
  };
  readonly x402: X402Config | undefined;
  readonly resources: readonly ResourceConfig[];
  readonly limits: { readonly maxInFlight: number; readonly maxStreams: number };
}

export interface StorageConfig {
  readonly engine:
    | { readonly kind: 'redis'; readonly url: string }
    | { readonly kind: 'sqlite'; readonly path: string };
  readonly eventsMaxLength: number;
  readonly receiptsMaxLength: number;
  readonly replicas: number;
}

export interface X402Config {
  /** CAIP-2. */
  readonly network: string;
  readonly chainId: number;
  readonly asset: string;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly rpcUrl: string | undefined;
  readonly facilitator: FacilitatorConfig;
  readonly localSignatureCheck: boolean;
  readonly mode: DeploymentMode;
  /** EIP-712 domain separator of the asset, 32 bytes as 0x-hex. */
  readonly domainSeparator: string;
}

export type FacilitatorConfig =
  | {
      readonly mode: 'remote';
      readonly url: string;
      readonly auth: { readonly type: 'none' } | { readonly type: 'bearer'; readonly token: string };
    }
  | { readonly mode: 'local' /** 32 bytes 0x-hex; pays gas only. */; readonly privateKey: string };

export type Pricing =
  | { readonly type: 'free' }
  | {
      readonly type: 'fixed';
      /** Display units, as configured. */
      readonly amount: string;
      readonly currency: string;
      /** Base units. */
      readonly units: bigint;
    };

export interface ResourceConfig {
  readonly id: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly inputSchema: JsonObject | undefined;
  readonly outputSchema: JsonObject | undefined;
  /** Accepts patterns that may take long on hostile text; absent: refused. */
  readonly allowSlowPattern?: boolean;
  readonly mimeType: string;
  readonly backend: {
    readonly method: BackendRequest['method'];
    /** Path template with `{param}`s and an optional fixed query. */
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly inputBindings:
      | { readonly path: readonly string[]; readonly query: readonly string[]; readonly body: readonly string[] }
      | undefined;
    readonly timeoutMs: number;
    readonly maxResponseBytes: number;
    readonly idempotent: boolean;
    readonly relayStatuses: readonly number[];
  };
  readonly pricing: Pricing;
  /** Mounted channels only, in the order of the configuration. */
  readonly exposedVia: readonly Channel[];
  readonly paymentMethods: readonly 'x402'[];
}
