import type { SealingKeys } from '../../crypto/seal.ts';

/** A server by name or address and port. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/**
 * Where Redis is found: one server, the primary that sentinels name, or a cluster. `url`: redis://,
 * rediss:// or unix:///path.
 */
export type RedisAddress =
  | { readonly url: string }
  | {
      readonly sentinel: {
        /** What the sentinels call the primary. */
        readonly name: string;
        readonly nodes: readonly RedisNode[];
        readonly username?: string;
        readonly password?: string;
      };
    }
  | { readonly cluster: { readonly nodes: readonly RedisNode[] } };

/**
 * How Redis is reached. With `tls`, or rediss://, everything is encrypted, the way to the sentinels
 * too.
 */
export type RedisSettings = RedisAddress & {
  readonly username?: string;
  readonly password?: string;
  /**
   * `ca`: PEM of the authorities to trust instead of the well-known ones. `servername`: the name
   * that the certificate must have.
   */
  readonly tls?: { readonly ca?: string; readonly servername?: string };
  /**
   * Replicas of the primary, as set up. From 2 on the writes around a settlement wait until one of
   * them has them.
   */
  readonly replicas?: number;
};

/** The store as configured. Counts are entries, `receiptsMaxLength` of delivered ones. */
export interface StorageConfig {
  readonly engine: ({ readonly kind: 'redis' } & RedisSettings) | { readonly kind: 'sqlite'; readonly path: string };
  readonly eventsMaxLength: number;
  readonly receiptsMaxLength: number;
  /**
   * Delivered receipts older than this are dropped, milliseconds; absent: only their number counts.
   */
  readonly receiptsMaxAgeMs?: number;
  /**
   * What is stored of buyers is sealed with them: the first seals, all of them open. Absent: it
   * lies in clear.
   */
  readonly sealing?: SealingKeys;
  /** Gateway processes that share the store. */
  readonly replicas: number;
}
