import type { Operation } from '../../checkouts/operations.ts';
import type { AcpDiscoverySettings, IdempotencySettings } from '../../checkouts/settings.ts';
import type { SealingKeyDocument } from './document.ts';

/** `protocols.acp` as the schema admits it, before defaults. What it must have once it is enabled is decided behind the schema. */
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
    readonly keys?: readonly SealingKeyDocument[];
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
