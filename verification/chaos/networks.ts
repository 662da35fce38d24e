/**
 * The networks of a run, each with a chain, a node and a facilitator. Of two, each facilitator is
 * away at times of its own, and each network in turn is not offered for a while.
 */

import type { NetConnectOpts } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { CURRENCY } from '../../spec/support/config.ts';
import { startPublicChain } from '../../spec/support/public-chain.ts';
import type { TcpProxy } from '../../spec/support/tcp-proxy.ts';
import { type Chain, type ChainAccess, startChain } from '../../tools/local-world/chain.ts';
import type { Market } from './buyer.ts';
import { type Action, every } from './controller.ts';
import { type Facilitator, openFacilitator } from './facilitator.ts';
import { type Faults, openLine, openNodeLine } from './faults.ts';
import { PRICE_UNITS } from './fleet.ts';
import type { Plan } from './plan.ts';
import { type Seed, seedOf } from './seed.ts';

/** One way to pay the gateways of a run. */
export interface Network {
  readonly chain: Chain;
  /** What prices call its token, and the price of every resource in it, base units. */
  readonly currency: string;
  readonly units: bigint;
  readonly payTo: string;
  readonly rpcUrl: string;
  readonly facilitator: Facilitator;
  readonly facilitatorLine: TcpProxy;
  readonly facilitatorUrl: string;
}

/** The second network: nothing of it but the decimals is as on the first. */
const SECOND = { chainId: 31_338, asset: `0x${'e2'.repeat(20)}`, name: 'Test Euro', version: '7' } as const;
const TERMS = [
  { start: () => startChain(), currency: CURRENCY, units: PRICE_UNITS },
  { start: () => startPublicChain(SECOND), currency: 'TEUR', units: 700n },
];
/** Pause between two empty blocks, which advance the chain's clock, milliseconds. */
const BLOCK_EVERY_MS = 1_000;

/** Starts the networks of a plan. */
export function openNetworks(plan: Plan, faults: Faults, onEnd: (end: () => unknown) => void) {
  const open = async ({ start, ...terms }: (typeof TERMS)[number], at: number): Promise<Network> => {
    const chain = await start();
    onEnd(chain.stop);
    onEnd(breathe(chain));
    const name = at === 0 ? '' : String(at);
    const [facilitator, node] = await Promise.all([
      openFacilitator(chain, plan, faults),
      openNodeLine(chain.rpcUrl, plan, faults, name),
    ]);
    onEnd(facilitator.stop);
    onEnd(node.stop);
    const line = await openLine(peerOf(facilitator.url), 'facilitator-line', plan.faults.lines, faults, name);
    onEnd(line.stop);
    return {
      ...{ chain, ...terms, facilitator, facilitatorLine: line },
      payTo: privateKeyToAddress(generatePrivateKey()),
      rpcUrl: node.url,
      facilitatorUrl: `http://127.0.0.1:${line.port}`,
    };
  };
  return Promise.all(TERMS.slice(0, plan.networks).map(open));
}

/** Where a server listens. */
export function peerOf(url: string): NetConnectOpts {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** Mines empty blocks, so that the chain's clock advances without payments. */
function breathe(chain: ChainAccess): () => void {
  const timer = setInterval(() => void chain.request('evm_mine', []).catch(() => undefined), BLOCK_EVERY_MS);
  return () => clearInterval(timer);
}

/** Outages of facilitators, and reloads that take a network out of the offers and put it back. */
interface Disturbance {
  readonly actions: readonly Action[];
  readonly counts: Readonly<Record<'facilitatorCuts' | 'facilitatorPauses' | 'reloads', number>>;
  /** Whether all reloads have happened, or one has failed. */
  done(): boolean;
  /** Time of the last outage or reload, Unix milliseconds. */
  readonly lastAt: number;
  /** Ends outages; resolves when each facilitator is back and each network is offered. */
  stop(): Promise<void>;
}

/** After which share of the calls an entry is offered no more, or again. */
const RELOADS = [
  { share: 0.15, at: 1, offered: false },
  { share: 0.35, at: 1, offered: true },
  { share: 0.5, at: 0, offered: false },
  { share: 0.7, at: 0, offered: true },
] as const;
const LOOK_EVERY_MS = 100;
/** For a gateway that was starting or stopped as a file was written, milliseconds. */
const RELOADED_WITHIN_MS = 30_000;

/** Starts outages and reloads, where there are two networks. `calls`: how many were begun. */
export function disturbNetworks(networks: readonly Network[], market: Market, calls: () => number): Disturbance {
  const { plan, posts } = market;
  const began = Date.now();
  const over = new AbortController();
  const actions: Action[] = [];
  const counts = { facilitatorCuts: 0, facilitatorPauses: 0, reloads: 0 };
  let lastAt = 0;
  const note = (what: string): void => {
    lastAt = Date.now();
    actions.push({ atMs: lastAt - began, what });
  };
  const leave = async ({ currency, facilitator, facilitatorLine }: Network, seed: Seed): Promise<void> => {
    const [count, goes, comes] = seed.chance(0.5)
      ? (['facilitatorCuts', facilitatorLine.cut, facilitatorLine.mend] as const)
      : (['facilitatorPauses', facilitator.pause, facilitator.wake] as const);
    counts[count] += 1;
    note(`${count}: that of ${currency} leaves`);
    goes();
    await delay(seed.between(...plan.facilitatorAwayMs));
    comes();
    note(`that of ${currency} is back`);
  };
  const reload = async ({ share, at, offered }: (typeof RELOADS)[number]): Promise<void> => {
    while (calls() < share * plan.calls && !over.signal.aborted) await delay(LOOK_EVERY_MS);
    const network = `eip155:${networks[at]?.chain.chainId}`;
    note(`${network} ${offered ? 'is offered again' : 'is offered no more'}`);
    if (offered) market.removed = undefined;
    await Promise.all(posts.map((post) => post.offer(at, offered)));
    if (!offered) market.removed = { network, since: Date.now() + RELOADED_WITHIN_MS };
    counts.reloads += 1;
    note(`${network}: done`);
  };
  const reloads = async (): Promise<void> => {
    for (const step of RELOADS) await reload(step);
  };
  const { facilitatorAwayEveryMs: span } = plan;
  const loops = Promise.all(
    networks.length === 1
      ? []
      : [
          reloads(),
          ...networks.map((one) =>
            every(span, seedOf(`${plan.seed}/away/${one.currency}`), over.signal, (seed) => leave(one, seed)),
          ),
        ],
  );
  let failed = false;
  // `stop` awaits it, and throws the error.
  loops.catch(() => {
    failed = true;
  });
  return {
    ...{ actions, counts },
    done: () => failed || networks.length === 1 || counts.reloads === RELOADS.length,
    get lastAt() {
      return lastAt;
    },
    async stop() {
      over.abort();
      await loops;
    },
  };
}
