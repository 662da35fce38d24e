/** Sends JSON-RPC messages, and watches whether an answer leaves as a whole. */

import type { Response } from 'express';
import type { Relayed, RelayOptions } from '../../pipeline/call.ts';
import { noteOutcome } from '../../server/http/access-record.ts';
import { sendText } from '../../server/http/respond.ts';
import { isSent, NOTHING_SENT } from '../http/response-writer.ts';
import { errorText, type RpcError, type RpcId } from './message.ts';

const HEAD = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const;

/**
 * Sends one message. It may hold a challenge or a bought answer, so caches must not store it. Does
 * nothing when the caller is gone.
 */
export function sendRpc(res: Response, status: number, text: string | Buffer): void {
  sendText(res, status, HEAD, text);
}

/** Refuses a message before it becomes a call; the code of the error is the outcome in the log. */
export function sendRpcError(res: Response, status: number, id: RpcId | null, error: RpcError): void {
  noteOutcome(res, `${error.code}`);
  sendRpc(res, status, errorText(id, error));
}

/** Sends an answer once `sending` resolves; `finished`: the operating system has the last byte. */
export async function sendRpcWatched(res: Response, text: string, sending?: RelayOptions['sending']): Promise<Relayed> {
  if (sending !== undefined && !res.destroyed && !(await sending())) res.destroy();
  if (res.destroyed) return { kind: 'client_gone', sent: NOTHING_SENT };
  sendRpc(res, 200, text);
  if (await isSent(res)) return { kind: 'finished' };
  const bytes = Buffer.byteLength(text);
  return { kind: 'client_gone', sent: { begun: true, bytes, of: bytes } };
}
