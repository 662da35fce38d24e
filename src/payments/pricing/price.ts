/** What a call costs. */
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
