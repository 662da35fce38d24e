/** The configuration as all code behind it reads it: expanded, validated, derived. */

import type { AcpConfig } from '../../checkouts/settings.ts';
import type { PublicJwk } from '../../crypto/signing-key.ts';
import type { Ap2Config } from '../../mandates/ap2/trust/settings.ts';
import type { PassthroughSettings } from '../../passthrough/settings.ts';
import type { UnpaidWorkLimits } from '../../payments/settlement/unpaid-work.ts';
import type { X402Config } from '../../payments/x402/wire/settings.ts';
import type { PublishedName } from '../../resources/published.ts';
import type { OriginHeader, ResourceConfig } from '../../resources/settings.ts';
import type { Rate } from '../../server/limits/rates.ts';
import type { StorageConfig } from '../../store/port/settings.ts';

/** The A2A adapter, and the texts of its agent card. */
interface A2aConfig {
  readonly enabled: boolean;
  readonly mountPath: string;
  readonly errorProfile: 'gateway' | 'spec';
  readonly description: string | undefined;
  readonly provider: { readonly organization: string; readonly url: string } | undefined;
  readonly documentationUrl: string | undefined;
  readonly iconUrl: string | undefined;
  /** PKCS#8 PEM of a P-256 key; undefined: the card is not signed. */
  readonly signingKey: string | undefined;
}

/** The keys of what buyers keep. */
export interface SigningConfig {
  /** PKCS#8 PEM of a P-256 key: it signs receipts, statements and offers, and nothing else. */
  readonly key: string;
  /** Keys that signed before; each has its thumbprint as its id. */
  readonly alsoPublish: readonly PublicJwk[];
  /** Whether the offers of challenges are signed. */
  readonly offers: boolean;
}

export interface GatewayConfig {
  readonly merchant: {
    readonly id: string;
    readonly name: string /** No trailing slash. */;
    readonly publicBaseUrl: string;
    /** Without trailing slashes too. */
    readonly formerBaseUrls: readonly string[];
  };
  readonly server: {
    readonly host: string;
    readonly port: number;
    /** Current and next operator token; empty: operator routes do not exist. */
    readonly adminTokens: readonly string[];
    /** A filling of the two operator tokens that is probably a mistake, for the warnings. */
    readonly rotation: 'next alone' | 'same twice' | undefined;
    /** Lower-cased exact origins. */
    readonly allowedOrigins: readonly string[];
    /** Undefined: no Host check. */
    readonly allowedHosts: readonly string[] | undefined;
    readonly trustProxy: number;
    /** Largest head of an answer. */
    readonly maxHeadBytes: number;
  };
  readonly management: { readonly host: string; readonly port: number };
  readonly backend: {
    readonly origin: string;
    /** The path of the base URL, before every path below it; no trailing slash, often empty. */
    readonly pathPrefix: string;
    readonly headers: Readonly<Record<string, string>>;
    /** A path of the backend that may be requested without payment, prefix included. */
    readonly probePath: string | undefined;
    /** Undefined: what is not sold does not pass. */
    readonly passthrough: PassthroughSettings | undefined;
    /** Headers of a call in place that the backend gets, and that are part of what is bought. */
    readonly originHeaders: readonly OriginHeader[];
  };
  readonly storage: StorageConfig;
  readonly protocols: {
    readonly http: { readonly enabled: boolean };
    readonly mcp: { readonly enabled: boolean; readonly mountPath: string };
    readonly a2a: A2aConfig;
    readonly acp: AcpConfig;
  };
  readonly x402: X402Config | undefined;
  /** Mandates, where they are switched on. */
  readonly authorization: { readonly ap2: Ap2Config | undefined };
  /** Undefined: nothing is signed for buyers. */
  readonly signing: SigningConfig | undefined;
  readonly resources: readonly ResourceConfig[];
  /** Documents about what is sold that are served beside the list of resources. */
  readonly publish: ReadonlySet<PublishedName>;
  readonly limits: {
    readonly maxInFlight: number;
    readonly maxStreams: number;
    /** Passed requests that run at the same time, upgraded ones apart. */
    readonly maxPassthrough: number;
    /** Connections that were upgraded to WebSockets. */
    readonly maxUpgrades: number;
    /** Memory for answers that are held as a whole, bytes. */
    readonly maxBufferedBytes: number;
    /** Of calls that are settled after the backend answered. Of all processes together. */
    readonly unpaidWork: UnpaidWorkLimits;
    /** Of each client; undefined: no rate limit. */
    readonly rate: Rate | undefined;
  };
}
