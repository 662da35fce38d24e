/** Opens the configured rail at start: recovery engine, chain, facilitator or relayer, checks. */

import { nodeFailure } from './chain/rpc.ts';
import { prepareRecovery, type RecoveryEngine } from './evm/signature.ts';
import type { OpenNode } from './open-node.ts';
import { wasSentBack } from './refund/transfer.ts';
import { guardExaminer, guardRail } from './verify/chain-guard.ts';
import { type Candidate, createExaminer, type Examination } from './verify/verify.ts';
import type { EntryOf } from './wire/bazaar.ts';
import { ofItsAsset } from './wire/elsewhere.ts';
import type { FacilitatorConfig, FacilitatorEndpoint, X402Config } from './wire/settings.ts';
import type { PaymentRail } from './wire/types.ts';

/** The configured rail, open, with the local checks that come before it. */
export interface X402Rail extends PaymentRail {
  readonly recoveryEngine: RecoveryEngine;
  /** The checks of contract 4.2, steps 1 to 4, for a decoded proof. */
  examine(candidate: Candidate): Examination;
  /**
   * Takes over what of a configuration may change while the rail is open: the logins at its
   * facilitators, and what these may catalogue, which is nothing before.
   */
  renew(config: Pick<X402Config, 'facilitator'>, entryOf: EntryOf): void;
  close(): Promise<void>;
}

/** The log lines of opening a rail. */
interface RailLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/**
 * Opens the rail: tests the recovery of signers, and compares the configured asset with its
 * contract. While a node or facilitator is down the rail opens all the same and readiness shows it;
 * the asset is then compared as soon as the node answers.
 * @throws AssetMismatch
 */
export async function createRail(config: X402Config, log: RailLog): Promise<X402Rail> {
  // What asks a chain is loaded for one alone: its library takes several megabytes.
  const node = config.rpcUrls.length === 0 ? undefined : (await import('./open-node.ts')).openNode(config);
  try {
    return await openRail(config, node, log);
  } catch (error) {
    await node?.close();
    throw error;
  }
}

async function openRail(config: X402Config, node: OpenNode | undefined, log: RailLog): Promise<X402Rail> {
  const { engine, recover } = await prepareRecovery();
  log.info({ engine, facilitator: config.facilitator.mode }, 'x402 rail');
  await node?.compareAtStart(log);
  const logins = facilitatorLogins(config.facilitator);
  let entryOf: EntryOf = () => undefined;
  const present: EntryOf = (payload) => entryOf(payload);
  const settings = { ...config, facilitator: logins.facilitator };
  const { rail: unwatched, close } = await railOf(settings, node, present);
  const rail = ofItsAsset(node === undefined ? unwatched : guardRail(node.health, unwatched, log), config);
  const wallets = node?.walletSignatures(rail.facilitator);
  const examine = createExaminer({
    terms: config,
    recover,
    wallets,
    verifyByRail: (proof, offer) => rail.verify(proof, offer),
  });
  const chain = node?.health.chain;
  return {
    ...rail,
    ...(chain === undefined ? {} : { sentBack: (proof, offer) => wasSentBack(chain, proof, offer) }),
    recoveryEngine: engine,
    examine: node === undefined ? examine : guardExaminer(node.health, examine),
    renew({ facilitator }, renewed) {
      logins.renew(facilitator);
      entryOf = renewed;
    },
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
  entryOf: EntryOf,
): Promise<{ readonly rail: PaymentRail; readonly close: () => Promise<void> }> {
  const { facilitator, network, confirm, confirmations } = config;
  if (facilitator.mode === 'remote') {
    const { createRemoteRail } = await import('./facilitator/remote-rail.ts');
    const rail = createRemoteRail({
      facilitator,
      network,
      chain: node?.health.chain,
      confirm,
      confirmations,
      entryOf,
    });
    return { rail, close: () => rail.close() };
  }
  if (node === undefined) throw new Error('a local facilitator needs an RPC URL');
  const { createLocalRail } = await import('./local/local-rail.ts');
  const { rpc, health } = node;
  const { privateKey } = facilitator;
  const rail = await createLocalRail({ rpc, chain: health.chain, terms: config, privateKey });
  return { rail, close: async () => undefined };
}

/**
 * The facilitators, whose logins may be changed while the rail is open. Their places in the list
 * and their addresses stay, or it would be another rail.
 */
function facilitatorLogins(configured: FacilitatorConfig): {
  readonly facilitator: FacilitatorConfig;
  renew(facilitator: FacilitatorConfig): void;
} {
  if (configured.mode !== 'remote') return { facilitator: configured, renew: () => undefined };
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
