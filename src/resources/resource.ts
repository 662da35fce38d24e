/** A resource as the pipeline uses it, compiled once at start. */

import type { BackendRequest } from '../backend/backend-exchange.ts';
import type { InputProblem } from '../errors.ts';
import type { Channel } from '../events/event.ts';
import type { Json, JsonObject } from '../json/json.ts';
import type { Pricing } from '../payments/pricing/amount.ts';
import type { AddressReader } from './reverse-template.ts';
import type { ResourceConfig } from './settings.ts';

export interface Resource {
  readonly id: string;
  readonly name: string;
  readonly pricing: Pricing;
  readonly exposedVia: readonly Channel[];
  /** Authorizations that a buyer must bring besides money. */
  readonly authorization: ResourceConfig['authorization'];
  readonly backend: Pick<
    ResourceConfig['backend'],
    'method' | 'path' | 'headers' | 'timeoutMs' | 'maxResponseBytes' | 'idempotent' | 'relayStatuses'
  >;
  /**
   * Compiles the validator of inputs unless it is compiled; returns whether it compiled now.
   * `prepare` does so too, but for a wrong input it also compiles the validator that reports all
   * problems in the same turn of the event loop.
   */
  compile(): boolean;
  /**
   * Strips the reserved members, validates, and builds the whole backend request. `raw`: the bytes
   * that the caller sent. They become the body if that is the whole unchanged input, so that no
   * number loses a digit.
   */
  prepare(input: JsonObject, raw: Uint8Array | undefined): PreparedInput;
  /** Reads its input at the backend's own address; undefined where it is not sold there. */
  readonly address: AddressReader | undefined;
  /** Whether an answer fits the published output schema; undefined when there is none. */
  readonly fitsOutput: ((value: Json) => boolean) | undefined;
}

/** A valid input with its backend request, or at most 20 of its problems. */
type PreparedInput =
  | {
      readonly ok: true;
      readonly request: BackendRequest;
      /** Without the reserved members. */
      readonly input: JsonObject;
    }
  | { readonly ok: false; readonly problems: readonly InputProblem[] };

/** Methods whose repetition does no harm (RFC 9110, 9.2.2). */
const METHODS: ReadonlySet<BackendRequest['method']> = new Set(['GET', 'PUT', 'DELETE']);

/**
 * Whether the same request may be sent twice (contract 4.3, "undelivered"). `idempotent`: the
 * merchant says so of this operation, whatever its method.
 */
export function isRepeatable({
  method,
  idempotent,
}: {
  readonly method: BackendRequest['method'];
  readonly idempotent: boolean;
}): boolean {
  return idempotent || METHODS.has(method);
}
