/** Readings through several nodes of one chain, in order, and again after a failure that passes. */

import { setTimeout as delay } from 'node:timers/promises';
import { RPC_DEADLINE_MS, type Rpc, recurrenceOf } from './rpc.ts';

/** Tries of one reading; a node that is down must not use up the second of a look at its health. */
const TRIES = 5;
/** Before the second try of all nodes, milliseconds; it doubles. */
const FIRST_PAUSE_MS = 50;
/** How long another node is asked first after a node failed, milliseconds. */
export const FIRST_NODE_AGAIN_MS = 30_000;
/** A lost answer does not show whether a transaction arrived, so what sent it decides. */
const SENDING = 'eth_sendRawTransaction';

interface NodeOrderDeps {
  /** Compares the asset that a node shows. What a node of another chain shows must never count. */
  readonly compare: (node: Rpc) => Promise<void>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/**
 * Asks the first node, and the next one for a while after a failure. A transaction is sent once, to
 * the node that the last reading came from.
 * @param nodes At least one. A single node is compared by its owner.
 */
export function inOrder(nodes: readonly Rpc[], { compare, now = () => performance.now() }: NodeOrderDeps): Rpc {
  const compared = new Set(nodes.length === 1 ? nodes : []);
  let place = 0;
  let leftFirstAt = 0;

  const nodeNow = (): Rpc => {
    if (place > 0 && now() - leftFirstAt >= FIRST_NODE_AGAIN_MS) place = 0;
    return nodes[place] as Rpc;
  };
  const failed = (node: Rpc): void => {
    if (nodes[place] !== node) return;
    if (place === 0) leftFirstAt = now();
    place = (place + 1) % nodes.length;
  };
  return {
    async call(method, params, deadlineMs = RPC_DEADLINE_MS) {
      const endsAt = now() + deadlineMs;
      for (let tried = 1, pause = FIRST_PAUSE_MS; ; tried += 1) {
        const node = nodeNow();
        // A silent node leaves time for those behind it.
        const share = Math.max(1, (endsAt - now()) / Math.max(1, nodes.length - tried + 1));
        try {
          if (!compared.has(node)) {
            await compare(node);
            compared.add(node);
          }
          return await node.call(method, params, share);
        } catch (error) {
          const recurrence = recurrenceOf(error);
          if (recurrence === 'always') throw error;
          failed(node);
          const tries = recurrence === 'here' ? nodes.length : Math.max(TRIES, nodes.length);
          if (method === SENDING || tried >= tries) throw error;
          if (tried % nodes.length > 0) continue;
          if (now() + pause >= endsAt) throw error;
          await delay(pause);
          pause *= 2;
        }
      }
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
