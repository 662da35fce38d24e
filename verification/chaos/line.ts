/** Proxies between the programs of a run; `Faults` decides which bytes or calls fail. */

import type { NetConnectOpts } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answerJson, type HttpServer, resetConnection, serveHttp } from '../../spec/support/http-server.ts';
import { type Piece, startTcpProxy, type TcpProxy } from '../../spec/support/tcp-proxy.ts';
import type { Faults } from './faults.ts';
import type { Plan } from './plan.ts';
import type { Seed } from './seed.ts';

/** A chunk ends the connection, comes late, or arrives in part before the connection ends. */
const PIECE_FAULTS = ['cut', 'delayed', 'truncated'] as const;
const LATE_MS = [50, 1_500] as const;
const NODE_FAULTS = ['error', 'cut', 'slow'] as const;
const LONGEST_SLOW_MS = 1_400;

/**
 * Opens a proxy to a server. Every chunk, in either direction, may fail at this rate by the faults
 * of `party`; the order of bytes never changes.
 */
export function openLine(to: NetConnectOpts, party: string, rate: number, faults: Faults): Promise<TcpProxy> {
  return startTcpProxy(to, (piece) => {
    const { bytes, from, into } = piece;
    const fault = faults.next(party, '', rate, PIECE_FAULTS);
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

/** Opens a proxy to the chain's node, which fails call by call. */
export function openNodeLine(rpcUrl: string, plan: Plan, faults: Faults): Promise<HttpServer> {
  return serveHttp(async ({ response, body }) => {
    const fault = faults.next('rpc', '', plan.faults.rpc, NODE_FAULTS);
    if (fault?.kind === 'error') return answerJson(response, 503, { error: 'unavailable' });
    if (fault?.kind === 'cut') return resetConnection(response);
    if (fault?.kind === 'slow') await delay(fault.seed.between(0, LONGEST_SLOW_MS));
    const passed = await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    answerJson(response, passed.status, await passed.json());
  });
}
