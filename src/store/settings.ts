/** The store as configured. Counts are entries. */
export interface StorageConfig {
  readonly engine:
    | { readonly kind: 'redis'; readonly url: string }
    | { readonly kind: 'sqlite'; readonly path: string };
  readonly eventsMaxLength: number;
  readonly receiptsMaxLength: number;
  readonly replicas: number;
}
