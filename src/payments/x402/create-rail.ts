/** Opens the configured rail at start: recovery engine, chain, facilitator or relayer, checks. */

import { AssetMismatch, requireAsset } from './chain/asset-check.ts';
import { type Chain, createChain } from './chain/chain.ts';
import { watchChain } from './chain/chain-health.ts';
import { createRpc, nodeFailure, type Rpc } from './chain/rpc.ts';
import { createWalletSignatures, rememberCode } from './chain/wallet-signature.ts';
import { prepareRecovery, type RecoveryEngine } from './evm/signature.ts';
import { createRemoteRail } from './facilitator/remote-rail.ts';
import { createLocalRail } from './local/local-rail.ts';
import { guardExaminer, guardRail } from './verify/chain-guard.ts';
import { type Candidate, createExaminer, type Examination } from './verify/verify.ts';
import type { FacilitatorConfig, FacilitatorEndpoint, X402Config } from './wire/settings.ts';
import type { PaymentRail } from './wire/types.ts';

/** Local chains make a block when there is something to put into it, known mainnets by time. */
const BLOCKS_BY_TIME = { local: 'never', testnet: 'seen', mainnet: 'always' } as const;

/** The configured rail, open, with the local checks that come before it. */
export interface X402Rail extends PaymentRail {
  readonly recoveryEngine: RecoveryEngine;
  /** The checks of contract 4.2, steps 1 to 4, for a decoded proof. */
  examine(candidate: Candidate): Examination;
  /** Takes over the logins at the facilitators of another configuration; all else stays. */
  renew(config: Pick<X402Config, 'facilitator'>): void;
  close(): Promise<void>;
}

/** The log lines of opening a rail. */
interface RailLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/**
 * Opens the rail: tests the recovery engine, compares the asset with the chain. A node or
 * facilitator that is down does not stop the start and shows in readiness; the asset is then
 * compared as soon as the node answers.
 * @throws AssetMismatch
 */
export async function createRail(config: X402Config, log: RailLog): Promise<X402Rail> {
  const rpc = config.rpcUrl === undefined ? undefined : createRpc(config.rpcUrl);
  try {
    return await openRail(config, rpc, log);
  } catch (error) {
    await rpc?.close();
    throw error;
  }
}

async function openRail(config: X402Config, rpc: Rpc | undefined, log: RailLog): Promise<X402Rail> {
  const health =
    rpc === undefined
      ? undefined
      : watchChain(createChain(rpc, config.confirmations), { byTime: BLOCKS_BY_TIME[config.mode] });
  const chain = health?.chain;
  const { engine, recover } = await prepareRecovery();
  log.info({ engine, facilitator: config.facilitator.mode }, 'x402 rail');
  const comparison = rpc === undefined ? undefined : assetComparison(rpc, config);
  await comparison?.().catch((error: unknown) => {
    if (error instanceof AssetMismatch) throw error;
    log.warn({ err: error }, 'the asset could not be compared with the chain');
  });

  const logins = facilitatorLogins(config.facilitator);
  const { rail: unwatched, close } = await railOf({ ...config, facilitator: logins.facilitator }, rpc, chain);
  const rail = health === undefined ? unwatched : guardRail(health, unwatched, log);
  const wallets =
    rpc === undefined || chain === undefined
      ? undefined
      : createWalletSignatures({
          rpc,
          hasCode: rememberCode((address) => chain.hasCode(address)),
          deploysWallets: rail.facilitator === 'remote',
        });
  const examine = createExaminer({
    terms: config,
    recover,
    wallets,
    verifyByRail: (proof, offer) => rail.verify(proof, offer),
  });
  return {
    ...rail,
    recoveryEngine: engine,
    examine: health === undefined ? examine : guardExaminer(health, examine),
    renew: ({ facilitator }) => logins.renew(facilitator),
    async check() {
      try {
        await comparison?.();
      } catch (error) {
        return { found: 'unreachable', cause: nodeFailure(error) };
      }
      return rail.check();
    },
    async close() {
      await close();
      await rpc?.close();
    },
  };
}

async function railOf(
  config: X402Config,
  rpc: Rpc | undefined,
  chain: Chain | undefined,
): Promise<{ readonly rail: PaymentRail; readonly close: () => Promise<void> }> {
  const { facilitator, network, confirm, confirmations } = config;
  if (facilitator.mode === 'remote') {
    const rail = createRemoteRail({ facilitator, network, chain, confirm, confirmations });
    return { rail, close: () => rail.close() };
  }
  if (rpc === undefined || chain === undefined) throw new Error('a local facilitator needs an RPC URL');
  const rail = await createLocalRail({ rpc, chain, terms: config, privateKey: facilitator.privateKey });
  return { rail, close: async () => undefined };
}

/** Compares until it succeeds once: the asset of a chain does not change. */
function assetComparison(rpc: Rpc, config: X402Config): () => Promise<void> {
  let agreed = false;
  return async function compare() {
    if (agreed) return;
    await requireAsset(rpc, config);
    agreed = true;
  };
}

/**
 * The facilitators, whose logins may be changed while the rail is open. Their places in the list
 * and their addresses stay, or it would be another rail.
 */
function facilitatorLogins(configured: FacilitatorConfig): {
  readonly facilitator: FacilitatorConfig;
  renew(facilitator: FacilitatorConfig): void;
} {
  if (configured.mode === 'local') return { facilitator: configured, renew: () => undefined };
  const listed = ({ url, auth, fallbacks }: Extract<FacilitatorConfig, { readonly mode: 'remote' }>) =>
    [{ url, auth }, ...fallbacks] as const;
  let logins = listed(configured).map(({ auth }) => auth);
  const endpoint = ({ url, auth }: FacilitatorEndpoint, place: number): FacilitatorEndpoint => ({
    url,
    get auth() {
      return logins[place] ?? auth;
    },
  });
  const [first, ...fallbacks] = listed(configured);
  return {
    facilitator: {
      mode: 'remote',
      url: first.url,
      fallbacks: fallbacks.map((fallback, index) => endpoint(fallback, index + 1)),
      get auth() {
        return logins[0] ?? first.auth;
      },
    },
    renew(facilitator) {
      if (facilitator.mode === 'remote') logins = listed(facilitator).map(({ auth }) => auth);
    },
  };
}
