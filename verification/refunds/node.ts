/**
 * A chain whose node loses requests and replies, and restarts. It keeps its blocks: a node that
 * loses some shows a reorganization, which is what `confirmations` are for.
 */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type HttpExchange, serveHttp } from '../../spec/support/http-server.ts';
import { startAnvil } from '../../tools/local-world/anvil.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';

/** Of the requests. */
const LOST = { request: 0.02, reply: 0.03 } as const;
/** How long the port refuses connections in a restart, milliseconds. */
const DOWN_MS = 2_000;
/** Between looks at the transactions that wait, milliseconds. */
const POLL_MS = 20;

export interface FrailNode {
  /** Loses nothing, for the run itself. */
  readonly chain: Chain;
  /** Loses what the commands send and what they are answered. */
  readonly url: string;
  readonly counts: FrailCounts;
  /**
   * Restarts the node as soon as a transaction waits for a block, which is forgotten. Does nothing
   * when `over` ends before.
   */
  restart(over: Promise<unknown>): Promise<void>;
}

/** What happened so far. */
interface FrailCounts {
  lostRequests: number;
  lostReplies: number;
  restarts: number;
  /** Transactions that a restart has forgotten. */
  forgottenTransactions: number;
}

export async function startFrailNode(ends: AsyncDisposableStack, random: () => number): Promise<FrailNode> {
  const state = join(await temporaryDirectory(ends, 'acg-chain-'), 'chain.json');
  const chain = await startChain(0, state);
  let anvil: Awaited<ReturnType<typeof startAnvil>> = chain;
  ends.defer(() => anvil.stop());
  const counts = { lostRequests: 0, lostReplies: 0, restarts: 0, forgottenTransactions: 0 };
  const answer = async ({ request, response, body }: HttpExchange): Promise<void> => {
    const chance = random();
    if (chance < LOST.request) {
      counts.lostRequests += 1;
      request.socket.destroy();
      return;
    }
    const reply = await fetch(chain.rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const text = await reply.text();
    if (chance < LOST.request + LOST.reply) {
      counts.lostReplies += 1;
      request.socket.destroy();
      return;
    }
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(text);
  };
  let server = await serveHttp(answer);
  ends.defer(() => server.stop());
  const { url } = server;
  const waiting = async (): Promise<number> =>
    Number(((await chain.request('txpool_status', [])) as { readonly pending: string }).pending);

  return {
    chain,
    url,
    counts,
    async restart(over) {
      let isOver = false;
      void over.then(() => {
        isOver = true;
      });
      await chain.request('evm_setAutomine', [false]);
      while (!isOver && (await waiting()) === 0) await delay(POLL_MS);
      if (isOver) {
        await chain.request('evm_setAutomine', [true]);
        return;
      }
      await server.stop();
      counts.forgottenTransactions += await waiting();
      await anvil.stop();
      if ((await anvil.ended).signal !== null) throw new Error('the node ended before it had kept its blocks');
      counts.restarts += 1;
      await delay(DOWN_MS);
      anvil = await startAnvil(Number(new URL(chain.rpcUrl).port), state);
      server = await serveHttp(answer, Number(new URL(url).port));
    },
  };
}
