/** Decides by seed which calls of a run fail, and how. */

import type { NetConnectOpts } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answerJson, type HttpServer, resetConnection, serveHttp } from '../../spec/support/http-server.ts';
import { type Piece, startTcpProxy, type TcpProxy } from '../../spec/support/tcp-proxy.ts';
import type { Plan } from './plan.ts';
import { type Seed, seedOf } from './seed.ts';

/** Decides which call of which party fails, and how. */
export interface Faults {
  /**
   * The fault of this attempt, or undefined: chosen by seed, subject and the number of the attempt,
   * so that a replay has the same faults. `seed` is for the details of the fault.
   */
  next<K extends string>(
    party: string,
    subject: string,
    rate: number,
    kinds: readonly K[],
  ): { readonly kind: K; readonly seed: Seed } | undefined;
  /** A fault that took effect later than it was chosen. */
  late(): void;
  /** Ends all faults. */
  end(): void;
  /** By party and kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Of the last fault, Unix milliseconds. */
  readonly lastAt: number;
}

export function createFaults(seed: number): Faults {
  const attempts = new Map<string, number>();
  const counts: Record<string, number> = {};
  let lastAt = 0;
  let isOver = false;
  return {
    next(party, subject, rate, kinds) {
      const key = `${party}/${subject}`;
      const attempt = (attempts.get(key) ?? 0) + 1;
      attempts.set(key, attempt);
      const own = seedOf(`${seed}/weather/${key}/${attempt}`);
      if (isOver || !own.chance(rate)) return undefined;
      const kind = own.pick(kinds);
      const name = `${party}.${kind}`;
      counts[name] = (counts[name] ?? 0) + 1;
      lastAt = Date.now();
      return { kind, seed: own };
    },
    late: () => {
      lastAt = Date.now();
    },
    end: () => {
      isOver = true;
    },
    counts,
    get lastAt() {
      return lastAt;
    },
  };
}

/** A chunk ends the connection, comes late, or arrives in part before the connection ends. */
const PIECE_FAULTS = ['cut', 'delayed', 'truncated'] as const;
const LATE_MS = [50, 1_500] as const;
const NODE_FAULTS = ['error', 'cut', 'slow'] as const;
const LONGEST_SLOW_MS = 1_400;

/**
 * Opens a proxy to a server. Every chunk, in either direction, may fail at this rate by the faults
 * of `party`; the order of bytes never changes. `subject`: for lines of one party that fail apart.
 */
export function openLine(
  to: NetConnectOpts,
  party: string,
  rate: number,
  faults: Faults,
  subject = '',
): Promise<TcpProxy> {
  return startTcpProxy(to, (piece) => {
    const { bytes, from, into } = piece;
    const fault = faults.next(party, subject, rate, PIECE_FAULTS);
    if (fault === undefined) piece.pass();
    else if (fault.kind === 'cut') from.destroy();
    else if (fault.kind === 'delayed') delayPiece(piece, fault.seed);
    else {
      // Bytes behind a missing part would look like other replies.
      from.pause();
      into.write(bytes.subarray(0, Math.floor(fault.seed.between(0, bytes.byteLength))), () => from.destroy());
    }
  });
}

/** Later bytes wait behind it. */
function delayPiece({ bytes, from, into }: Piece, seed: Seed): void {
  from.pause();
  setTimeout(
    () => {
      into.write(bytes);
      from.resume();
    },
    seed.between(...LATE_MS),
  );
}

/** Opens a proxy to the chain's node, which fails call by call; several nodes fail apart. */
export function openNodeLine(rpcUrl: string, plan: Plan, faults: Faults, subject = ''): Promise<HttpServer> {
  return serveHttp(async ({ response, body }) => {
    const fault = faults.next('rpc', subject, plan.faults.rpc, NODE_FAULTS);
    if (fault?.kind === 'error') return answerJson(response, 503, { error: 'unavailable' });
    if (fault?.kind === 'cut') return resetConnection(response);
    if (fault?.kind === 'slow') await delay(fault.seed.between(0, LONGEST_SLOW_MS));
    const passed = await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    answerJson(response, passed.status, await passed.json());
  });
}
