import type { Response } from 'express';
import type { Relayed, RelayOptions } from '../../pipeline/call.ts';
import { noteOutcome } from '../../server/http/access-record.ts';
import { sendText } from '../../server/http/respond.ts';
import { LAST_BYTES_MS } from '../http/response-writer.ts';
import { errorText, type RpcError, type RpcId } from './message.ts';

/**
 * Sends one JSON-RPC message. It may hold a challenge or a bought answer, so nobody may keep it.
 * Does nothing when the caller is gone.
 */
export function sendRpc(res: Response, status: number, text: string | Buffer): void {
  sendText(res, status, HEAD, text);
}

/**
 * Refuses a message with a JSON-RPC error before it became a call; its code is what became of the
 * request.
 */
export function sendRpcError(res: Response, status: number, id: RpcId | null, error: RpcError): void {
  noteOutcome(res, `${error.code}`);
  sendRpc(res, status, errorText(id, error));
}

const HEAD = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const;

/**
 * The same, and tells whether the last byte was handed to the operating system. The first one waits
 * for `sending`.
 */
export async function sendRpcWatched(res: Response, text: string, sending?: RelayOptions['sending']): Promise<Relayed> {
  if (res.destroyed) return { kind: 'client_gone' };
  if (sending !== undefined) {
    await sending();
    // The caller may have left meanwhile.
    if (res.destroyed) return { kind: 'client_gone' };
  }
  return new Promise((resolve) => {
    // Nothing else would ever give up on a reader who stopped reading.
    const patience = setTimeout(() => res.destroy(), LAST_BYTES_MS);
    res.once('finish', () => resolve({ kind: 'finished' }));
    res.once('close', () => {
      clearTimeout(patience);
      resolve(res.writableFinished ? { kind: 'finished' } : { kind: 'client_gone' });
    });
    sendRpc(res, 200, text);
  });
}
