/** The settings of resources and of the published documents, as the configuration derives them. */

import type { BackendRequest, RelayStatuses } from '../backend/backend-exchange.ts';
import type { Channel } from '../events/event.ts';
import type { Json, JsonObject } from '../json/json.ts';
import type { Pricing } from '../payments/pricing/amount.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import type { Labels } from '../payments/x402/wire/types.ts';
import type { PublishedName } from './published.ts';
import type { PairStyle } from './url-template.ts';

export interface CatalogueSettings {
  readonly merchant: {
    readonly id: string;
    readonly name: string;
    readonly publicBaseUrl: string;
    readonly iconUrl?: string;
  };
  readonly storage: { readonly engine: { readonly kind: 'redis' | 'sqlite' } };
  readonly protocols: Readonly<Record<'http', { readonly enabled: boolean }>> &
    Readonly<Record<'mcp' | 'acp', { readonly enabled: boolean; readonly mountPath: string }>> & {
      readonly a2a: { readonly enabled: boolean; readonly mountPath: string };
    };
  readonly x402: X402Config | undefined;
  readonly alternatives: readonly X402Config[];
  readonly authorization: { readonly ap2: PublicMandateSettings | undefined };
  readonly resources: readonly ResourceConfig[];
  /** Undefined: nothing is signed for buyers. */
  readonly signing: { readonly offers: boolean } | undefined;
  /** The documents that are served beside the list of resources. */
  readonly publish: ReadonlySet<PublishedName>;
}

/** The public part of the mandate settings. */
export interface PublicMandateSettings {
  readonly profile: { readonly audience: string; readonly algorithms: ReadonlySet<string> };
  readonly issuers: readonly { readonly id: string }[];
}

/** A header that a call at the backend's own address may bring along (contract 7.4). */
export type OriginHeader = 'accept' | 'authorization' | 'cookie';

/** The destinations of the input properties. */
interface InputBindings {
  readonly path: readonly string[];
  readonly query: readonly string[];
  /** The members of the body, or the property whose value is the whole body. */
  readonly body: readonly string[] | string;
  /** How properties in the query, and fields of a form, are written. */
  readonly styles: ReadonlyMap<string, PairStyle>;
}

/** One resource as configured and checked. */
export interface ResourceConfig {
  readonly id: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly inputSchema: JsonObject | undefined;
  readonly outputSchema: JsonObject | undefined;
  readonly mimeType: string;
  readonly labels: Labels;
  readonly backend: {
    readonly method: BackendRequest['method'];
    /** A path template with `{param}`s and an optional fixed query. */
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    /** Media type of the body: JSON or a form. */
    readonly contentType: string;
    readonly inputBindings: InputBindings | undefined;
    readonly timeoutMs: number;
    readonly maxResponseBytes: number;
    readonly idempotent: boolean;
    readonly relayStatuses: RelayStatuses;
    /** Whether a query name that is no input is refused at the backend's own address. */
    readonly strictQuery: boolean;
  };
  readonly pricing: Pricing;
  /** Mounted channels only, in the order of the configuration. */
  readonly exposedVia: readonly Channel[];
  readonly paymentMethods: readonly 'x402'[];
  /** Authorizations that a buyer must bring besides money. */
  readonly authorization: readonly 'ap2'[];
  /** Its public URL with `{param}`s, where it is sold at the backend's own address. */
  readonly address: string | undefined;
  /** Examples of an input and an answer, for catalogues; undefined: no catalogue lists it. */
  readonly bazaar: { readonly example: JsonObject; readonly output?: Json } | undefined;
}
