/** Decided once at start: where the money is real. */
export type DeploymentMode = 'local' | 'testnet' | 'mainnet';

/** The terms of payment as configured, with what follows from them. */
export interface X402Config {
  /** CAIP-2. */
  readonly network: string;
  readonly chainId: number;
  readonly asset: string;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly rpcUrl: string | undefined;
  readonly facilitator: FacilitatorConfig;
  readonly confirm: Confirmation;
  /** Blocks that must hold a payment, the one it happened in included. */
  readonly confirmations: number;
  /**
   * What the tokens of challenges are derived from, the newest first; empty: a random one in the
   * store (contract 4.5).
   */
  readonly buyerTokenSecrets: readonly string[];
  /** How long a token opens the answer that was delivered for it, seconds. */
  readonly keepAnswerSeconds: number;
  /** The operator's word that no other store and no other seller uses `payTo`. */
  readonly payToExclusive: boolean;
  /**
   * What an authorization gets that has no record although the chain shows that it paid us
   * (contract 4.3).
   */
  readonly onStoreLoss: 'deliver' | 'refuse';
  readonly localSignatureCheck: boolean;
  readonly mode: DeploymentMode;
  /** EIP-712 domain separator of the asset, 32 bytes as 0x-hex. */
  readonly domainSeparator: string;
}

/**
 * What makes a claimed settlement one: `receipt` the log pair on chain; `facilitator` its
 * well-formed claim. Whatever is not a claim is asked of the chain in both cases, when there is
 * one.
 */
export type Confirmation = 'receipt' | 'facilitator';

/** A facilitator over HTTP. No trailing slash. */
export interface FacilitatorEndpoint {
  readonly url: string;
  readonly auth: { readonly type: 'none' } | { readonly type: 'bearer'; readonly token: string };
}

/**
 * Who settles: facilitators over HTTP that hold keys of their own, or this gateway with a key that
 * pays gas only.
 */
export type FacilitatorConfig =
  | (FacilitatorEndpoint & {
      readonly mode: 'remote';
      /** Asked in this order when the ones before give no verdict. */
      readonly fallbacks: readonly FacilitatorEndpoint[];
    })
  | { readonly mode: 'local' /** 32 bytes 0x-hex. */; readonly privateKey: string };
