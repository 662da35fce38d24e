/** The configuration as all code behind it reads it: expanded, validated, derived. */

import type { AcpConfig } from '../../checkouts/settings.ts';
import type { PublicJwk } from '../../crypto/signing-key.ts';
import type { Ap2Config } from '../../mandates/ap2/purchase.ts';
import type { PassthroughSettings } from '../../passthrough/settings.ts';
import type { UnpaidWorkLimits } from '../../payments/settlement/places.ts';
import type { X402Config } from '../../payments/x402/wire/settings.ts';
import type { PublishedName } from '../../resources/published.ts';
import type { OriginHeader, ResourceConfig } from '../../resources/settings.ts';
import type { Rate } from '../../server/limits/rates.ts';
import type { StorageConfig } from '../../store/port/settings.ts';
import type { ConfigDocument } from './document.ts';

/** The derived configuration. Members without a comment are as in the document and its schema. */
export interface GatewayConfig {
  /** URLs without trailing slashes. */
  readonly merchant: ConfigDocument['merchant'];
  readonly server: Omit<ConfigDocument['server'], 'adminToken' | 'adminTokenNext' | 'allowedHosts'> & {
    /** Current and next operator token; empty: operator routes do not exist. */
    readonly adminTokens: readonly string[];
    /** A filling of the two operator tokens that is probably a mistake, for the warnings. */
    readonly rotation: 'next alone' | 'same twice' | undefined;
    /** Lower-cased, as the origins; undefined: no Host check. */
    readonly allowedHosts: readonly string[] | undefined;
  };
  readonly management: ConfigDocument['management'];
  readonly backend: {
    readonly origin: string;
    /** The path of the base URL, before every path below it; no trailing slash, often empty. */
    readonly pathPrefix: string;
    readonly headers: Readonly<Record<string, string>>;
    /** A path of the backend that may be requested without payment, prefix included. */
    readonly probePath: string | undefined;
    /** Undefined: unsold paths do not pass. */
    readonly passthrough: PassthroughSettings | undefined;
    /** Headers of a call in place that the backend gets, and that belong to the purchase. */
    readonly originHeaders: readonly OriginHeader[];
    /** Whether it gets a signed JWT with each call that is paid for. */
    readonly paymentContext: boolean;
  };
  readonly storage: StorageConfig;
  readonly protocols: Omit<ConfigDocument['protocols'], 'acp'> & { readonly acp: AcpConfig };
  /** The first entry of `payments.x402`. */
  readonly x402: X402Config | undefined;
  /** Its other entries, in the merchant's order. */
  readonly alternatives: readonly X402Config[];
  /** Addresses in lower case. */
  readonly blockedPayers: ReadonlySet<string>;
  /** Mandates, where they are switched on. */
  readonly authorization: { readonly ap2: Ap2Config | undefined };
  /** Undefined: nothing is signed for buyers. */
  readonly signing:
    | (Omit<NonNullable<ConfigDocument['signing']>, 'alsoPublish'> & { readonly alsoPublish: readonly PublicJwk[] })
    | undefined;
  readonly resources: readonly ResourceConfig[];
  /** Documents about what is sold that are served beside the list of resources. */
  readonly publish: ReadonlySet<PublishedName>;
  readonly limits: Omit<ConfigDocument['limits'], 'unpaidWork' | 'rate'> & {
    readonly unpaidWork: UnpaidWorkLimits;
    /** Of each client; undefined: no rate limit. */
    readonly rate: Rate | undefined;
  };
  /** Values that must never stand in an answer or a line of the log. */
  readonly secrets: readonly string[];
}

/** An entry of `payments.x402`, and the path that messages name it by. */
export interface ConfiguredEntry {
  readonly at: string;
  readonly x402: X402Config;
}

/** The entries of `payments.x402` in the merchant's order; a list of one is named as an object. */
export function configuredEntries({
  x402,
  alternatives,
}: Pick<GatewayConfig, 'x402' | 'alternatives'>): readonly ConfiguredEntry[] {
  if (x402 === undefined) return [];
  if (alternatives.length === 0) return [{ at: 'payments.x402', x402 }];
  return [x402, ...alternatives].map((entry, index) => ({ at: `payments.x402[${index}]`, x402: entry }));
}
