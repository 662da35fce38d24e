/** The settings of the x402 provider, as the configuration derives them. */

/** Decided once at start: whether the money is real. */
export type DeploymentMode = 'local' | 'testnet' | 'mainnet';

/** The terms of payment as configured, with derived values. */
export interface X402Config {
  /** CAIP-2. */
  readonly network: string;
  readonly chainId: number;
  readonly asset: string;
  readonly assetName: string;
  readonly assetVersion: string;
  readonly assetDecimals: number;
  /** Names of the token in prices. */
  readonly currencies: readonly string[];
  /** Whether 402s offer it; false: only payments that were begun are finished and refunded. */
  readonly offered: boolean;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  /** Nodes of the network in the order in which they are asked; none: no chain is asked. */
  readonly rpcUrls: readonly string[];
  readonly facilitator: FacilitatorConfig;
  readonly confirm: Confirmation;
  /** Blocks that must hold a payment, its own included. */
  readonly confirmations: number;
  /** Keys of the buyers' tokens, newest first; empty: a random one in the store (contract 4.5). */
  readonly buyerTokenSecrets: readonly string[];
  /** How long a token opens the delivered answer, seconds. */
  readonly keepAnswerSeconds: number;
  /** The operator declares that no other store and no other seller uses `payTo`. */
  readonly payToExclusive: boolean;
  /** Treatment of a payment that the chain shows and no record has (contract 4.3). */
  readonly onStoreLoss: 'deliver' | 'refuse';
  readonly localSignatureCheck: boolean;
  readonly mode: DeploymentMode;
  /** EIP-712 domain separator of the asset, 32 bytes as 0x-hex. */
  readonly domainSeparator: string;
}

/** All entries of `payments.x402`, in the merchant's order; none where nothing has a price. */
export function entriesIn(config: {
  readonly x402: X402Config | undefined;
  readonly alternatives: readonly X402Config[];
}): readonly X402Config[] {
  return config.x402 === undefined ? [] : [config.x402, ...config.alternatives];
}

/**
 * The proof of a settlement. `receipt`: the log pair on the chain; `facilitator`: a well-formed
 * claim. The chain, if there is one, decides about other answers in both cases.
 */
export type Confirmation = 'receipt' | 'facilitator';

/** How the gateway identifies itself to a facilitator. */
export type FacilitatorAuth =
  | { readonly type: 'none' }
  | { readonly type: 'bearer'; readonly token: string }
  /** An API key of the Coinbase Developer Platform; `keySecret` as `readCdpKey` takes it. */
  | { readonly type: 'cdp'; readonly keyId: string; readonly keySecret: string };

/** A facilitator over HTTP. No trailing slash. */
export interface FacilitatorEndpoint {
  readonly url: string;
  readonly auth: FacilitatorAuth;
}

/** The settling side: facilitators with keys of their own, or this gateway with a key for gas. */
export type FacilitatorConfig =
  | (FacilitatorEndpoint & {
      readonly mode: 'remote';
      /** Asked in this order when the earlier ones give no verdict. */
      readonly fallbacks: readonly FacilitatorEndpoint[];
    })
  | {
      readonly mode: 'local';
      /** 32 bytes 0x-hex. */
      readonly privateKey: string;
    };
