/** Remembers what the proofs of connections and client networks came to. */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { RecentMap } from '../../time/recent-map.ts';
import type { ClientOf } from '../rate-limit/client-address.ts';
import type { Standing } from './waiting-lines.ts';

/** Requests of a connection that go first after a purchase: a purchase cannot be forged. */
const FIRST_AFTER_PURCHASE = 8;
/** Refused proofs of a network in succession, without a purchase, after which it goes behind. */
export const REFUSED_IN_SUCCESSION = 8;
/** Most networks that are remembered at a time. */
const MAX_NETWORKS = 10_000;

/** Takes the end of the proof that a request brought. */
export type NoteProof = (req: IncomingMessage, came: 'bought' | 'refused') => void;

/**
 * The names inside a proof are not used: a forged one claims any payer. What cannot be forged is
 * the connection that a purchase came over, and the network that forged proofs come from.
 */
export class ProofStanding {
  readonly #networkOf: ClientOf;
  /** Requests left that go first; 0 for a connection whose last proof was refused. */
  readonly #connections = new WeakMap<Socket, number>();
  readonly #refusals = new RecentMap<{ inSuccession: number }>(MAX_NETWORKS);

  constructor(networkOf: ClientOf) {
    this.#networkOf = networkOf;
  }

  /** The network that a request counts for. */
  networkOf(req: IncomingMessage): string {
    return this.#networkOf(req);
  }

  /** How a request that must wait stands. */
  of({ socket }: IncomingMessage, network: string): Standing {
    const left = this.#connections.get(socket);
    if (left === 0) return 'failed';
    if (left !== undefined) {
      if (left > 1) this.#connections.set(socket, left - 1);
      else this.#connections.delete(socket);
      return 'paid';
    }
    return (this.#refusals.use(network)?.inSuccession ?? 0) < REFUSED_IN_SUCCESSION ? 'usual' : 'failed';
  }

  readonly note: NoteProof = (req, came) => {
    const bought = came === 'bought';
    this.#connections.set(req.socket, bought ? FIRST_AFTER_PURCHASE : 0);
    const network = this.#networkOf(req);
    const known = this.#refusals.use(network);
    if (known !== undefined) known.inSuccession = bought ? 0 : known.inSuccession + 1;
    else if (!bought) this.#refusals.add(network, { inSuccession: 1 });
  };
}
