/** The settings of a store, as the configuration gives them. */

import type { SealingKeys } from '../../crypto/seal.ts';

/** A server by name or address and port. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** A server (redis://, rediss:// or unix:///path), the primary of sentinels, or a cluster. */
export type RedisAddress =
  | { readonly url: string }
  | {
      readonly sentinel: {
        /** The name of the primary at the sentinels. */
        readonly name: string;
        readonly nodes: readonly RedisNode[];
        readonly username?: string;
        readonly password?: string;
      };
    }
  | { readonly cluster: { readonly nodes: readonly RedisNode[] } };

/** How Redis is reached. `tls` or rediss:// encrypt the connections to sentinels too. */
export type RedisSettings = RedisAddress & {
  readonly username?: string;
  readonly password?: string;
  /**
   * `ca`: PEM of the authorities that are trusted instead of the well-known ones. `servername`: the
   * name that the certificate must have.
   */
  readonly tls?: { readonly ca?: string; readonly servername?: string };
  /** Replicas of the primary. From 2 on the writes around a settlement wait for one of them. */
  readonly replicas?: number;
};

/** The bounds of a store. Counts are entries; `receiptsMaxLength` counts only delivered ones. */
export interface StoreLimits {
  readonly eventsMaxLength: number;
  readonly receiptsMaxLength: number;
  /** Delivered receipts older than this are dropped, milliseconds; absent: no bound of age. */
  readonly receiptsMaxAgeMs?: number;
}

/** The store as configured. */
export interface StorageConfig extends StoreLimits {
  readonly engine: ({ readonly kind: 'redis' } & RedisSettings) | { readonly kind: 'sqlite'; readonly path: string };
  /** Keys for data of buyers: the first seals, all of them open. Absent: stored in clear. */
  readonly sealing?: SealingKeys;
  /** Gateway processes that share the store. */
  readonly replicas: number;
}
