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
  readonly localSignatureCheck: boolean;
  readonly mode: DeploymentMode;
  /** EIP-712 domain separator of the asset, 32 bytes as 0x-hex. */
  readonly domainSeparator: string;
}

/** Who settles: a facilitator over HTTP that holds its own key, or this gateway with a key that pays gas only. */
export type FacilitatorConfig =
  | {
      readonly mode: 'remote';
      readonly url: string;
      readonly auth: { readonly type: 'none' } | { readonly type: 'bearer'; readonly token: string };
    }
  | { readonly mode: 'local' /** 32 bytes 0x-hex. */; readonly privateKey: string };
