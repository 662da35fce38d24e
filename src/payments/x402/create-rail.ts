/**
 * Opens the configured rail at start: recovery engine, nodes of the chain, facilitator or relayer,
 * checks.
 */

import { AssetMismatch, openNodes, requireAsset } from './chain/asset-check.ts';
import { createChain } from './chain/chain.ts';
import { guardRail, watchChain } from './chain/chain-health.ts';
import { nodeFailure } from './chain/node.ts';
import { createWalletSignatures } from './chain/wallet-signature.ts';
import { prepareRecovery } from './evm/account.ts';
import { createRemoteRail } from './facilitator/remote-rail.ts';
import { createLocalRail } from './local/local-rail.ts';
import { wasSentBack } from './refund/transfer.ts';
import { type Candidate, createExaminer, type Examination } from './verify/verify.ts';
import { type EntryOf, whyElsewhere } from './wire/offers.ts';
import type { X402Config } from './wire/settings.ts';
import type { FaultLog, PaymentRail } from './wire/types.ts';

/** The configured rail, open, with the local checks that come before it. */
export interface X402Rail extends PaymentRail {
  /** The checks of contract 4.2, steps 1 to 4, for a decoded proof. */
  examine(candidate: Candidate): Examination;
  /**
   * Takes over the parts of a configuration that may change while the rail is open: the logins at
   * its facilitators, which networks are offered, and the source of catalogue entries, which gives
   * none before. `entries`: all of `payments.x402`, in their order.
   */
  renew(entries: readonly Pick<X402Config, 'facilitator' | 'offered'>[], entryOf: EntryOf): void;
  /**
   * Indexes of the entries that the last `check` found unreachable; empty while no offered entry is
   * reachable, because then nothing better can be offered.
   */
  away(): ReadonlySet<number>;
  close(): Promise<void>;
}

/**
 * Opens the rail: tests the recovery of signers, and compares the configured asset with its
 * contract. While a node or facilitator is down the rail opens all the same and readiness shows it;
 * the asset is then compared as soon as the node answers.
 * @throws AssetMismatch
 */
export async function createRail(config: X402Config, log: FaultLog): Promise<X402Rail> {
  const node = config.rpcUrls.length === 0 ? undefined : openNode(config);
  try {
    return await openRail(config, node, log);
  } catch (error) {
    await node?.close();
    throw error;
  }
}

async function openRail(config: X402Config, node: OpenNode | undefined, log: FaultLog): Promise<X402Rail> {
  const { engine, recover } = await prepareRecovery();
  log.info({ engine, facilitator: config.facilitator.mode }, 'x402 rail');
  await node?.compareAtStart(log);
  const { rail: unwatched, renew, close } = await railOf(config, node);
  const rail = ofItsAsset(node === undefined ? unwatched : guardRail(node.health, unwatched, log), config);
  const wallets = node?.walletSignatures(rail.facilitator);
  const examine = createExaminer({
    terms: config,
    recover,
    wallets,
    verifyByRail: (proof, offer) => rail.verify(proof, offer),
    clockIsWrong: () => node?.health.faults().some(({ kind }) => kind === 'clock') === true,
  });
  const chain = node?.health.chain;
  return {
    ...rail,
    ...(chain === undefined ? {} : { sentBack: (proof, offer) => wasSentBack(chain, proof, offer) }),
    examine,
    renew,
    away: () => NONE_AWAY,
    async check() {
      try {
        await node?.compareAsset();
      } catch (error) {
        return { found: 'unreachable', cause: nodeFailure(error) };
      }
      return rail.check();
    },
    async close() {
      await close();
      await node?.close();
    },
  };
}

async function railOf(
  config: X402Config,
  node: OpenNode | undefined,
): Promise<Pick<X402Rail, 'renew' | 'close'> & { readonly rail: PaymentRail }> {
  const { facilitator, network, confirm, confirmations } = config;
  if (facilitator.mode === 'remote') {
    const rail = createRemoteRail({ facilitator, network, chain: node?.health.chain, confirm, confirmations });
    return {
      rail,
      renew([renewed], entryOf) {
        if (renewed?.facilitator.mode === 'remote') rail.renew(renewed.facilitator, entryOf);
      },
      close: () => rail.close(),
    };
  }
  if (node === undefined) throw new Error('a local facilitator needs an RPC URL');
  const { rpc, health } = node;
  const { privateKey } = facilitator;
  const rail = await createLocalRail({ rpc, chain: health.chain, terms: config, privateKey });
  return { rail, renew: () => undefined, close: async () => undefined };
}

const NONE_AWAY: ReadonlySet<number> = new Set();

/** Local chains make a block when there is something to put into it, known mainnets by time. */
const BLOCKS_BY_TIME = { local: 'never', testnet: 'seen', mainnet: 'always' } as const;

type OpenNode = ReturnType<typeof openNode>;

/**
 * The questions of a rail to a chain's node: its health, the asset, signatures of contracts. Opens
 * no connection before the first call.
 */
function openNode(config: X402Config) {
  const { rpc, nodes } = openNodes(config);
  const health = watchChain(createChain(rpc, config.confirmations), { byTime: BLOCKS_BY_TIME[config.mode] });
  let agreed = false;
  return {
    rpc,
    health,
    /** Compares until it succeeds once, because the asset does not change. @throws AssetMismatch */
    async compareAsset(): Promise<void> {
      if (agreed) return;
      await requireAsset(rpc, config);
      agreed = true;
    },
    /** Compares each node's asset; one that does not answer is logged. @throws AssetMismatch */
    async compareAtStart(log: FaultLog): Promise<void> {
      const compared = await Promise.allSettled(nodes.map((node) => requireAsset(node, config)));
      agreed = compared.some(({ status }) => status === 'fulfilled');
      for (const result of compared) {
        if (result.status === 'fulfilled') continue;
        if (result.reason instanceof AssetMismatch) throw result.reason;
        log.warn({ err: result.reason }, 'the asset could not be compared with the chain');
      }
    },
    walletSignatures: (facilitator: PaymentRail['facilitator']) =>
      createWalletSignatures(rpc, facilitator === 'remote'),
    close: () => rpc.close(),
  };
}

/**
 * Limits a rail to the payments of its own asset. Its chain proves nothing about the others, and no
 * facilitator may be sent them: they stay as they are.
 */
function ofItsAsset<Rail extends PaymentRail>(rail: Rail, own: X402Config): Rail {
  return {
    ...rail,
    async verify(proof, offer) {
      const cause = whyElsewhere(offer, [own]);
      return cause === undefined ? rail.verify(proof, offer) : { kind: 'unavailable', cause };
    },
    async settle(proof, offer, ...more) {
      const cause = whyElsewhere(offer, [own]);
      return cause === undefined ? rail.settle(proof, offer, ...more) : { kind: 'uncertain', cause };
    },
    async reconcile(proof, offer, history) {
      const cause = whyElsewhere(offer, [own]);
      return cause === undefined ? rail.reconcile(proof, offer, history) : { kind: 'unknown', cause };
    },
  };
}
