import type { BackendRequest } from '../backend/exchange.ts';
import type { InputProblem } from '../errors.ts';
import type { Channel } from '../events/event.ts';
import type { Json, JsonObject } from '../json/types.ts';
import type { Pricing } from '../payments/pricing/amount.ts';
import type { ResourceConfig } from './settings.ts';

/**
 * An input that passed the schema, with the backend request it leads to; or every problem found (at
 * most 20).
 */
type PreparedInput =
  | {
      readonly ok: true;
      readonly request: BackendRequest /** Without the reserved names. */;
      readonly input: JsonObject;
    }
  | { readonly ok: false; readonly problems: readonly InputProblem[] };

/** A resource compiled once at start. */
export interface Resource {
  readonly id: string;
  readonly name: string;
  readonly pricing: Pricing;
  readonly exposedVia: readonly Channel[];
  /** What a buyer must bring besides money. */
  readonly authorization: ResourceConfig['authorization'];
  readonly backend: Pick<
    ResourceConfig['backend'],
    'method' | 'headers' | 'timeoutMs' | 'maxResponseBytes' | 'idempotent' | 'relayStatuses'
  >;
  /**
   * Strips the reserved names, validates, and builds the whole backend request. `raw` are the bytes
   * the caller sent: they are forwarded as they are when the body is the whole unchanged input, so
   * that no number loses a digit on the way.
   */
  prepare(input: JsonObject, raw: Uint8Array | undefined): PreparedInput;
  /**
   * Whether an answer of the merchant fits the published output schema; undefined when there is
   * none.
   */
  readonly fitsOutput: ((value: Json) => boolean) | undefined;
}

/** Bytes known at start, served with a strong ETag. */
export interface StaticDocument {
  readonly bytes: Uint8Array;
  /** Quoted, as it stands in the header. */
  readonly etag: string;
}
