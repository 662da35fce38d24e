import { createHash } from 'node:crypto';

/** What makes an authorization the same authorization: the chain accepts each of these at most once. */
interface ReplaySubject {
  readonly chainId: number;
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
}

/**
 * The replay key (CONTRACT 4.3): SHA-256 hex over `x402|{chainId}|{asset}|{from}|{nonce}`, all lower case. It depends on the
 * authorization only, never on the bytes of a header or a signature, so one authorization in other clothes has the same key.
 */
export function replayKey({ chainId, asset, from, nonce }: ReplaySubject): string {
  const subject = `x402|${chainId}|${asset.toLowerCase()}|${from.toLowerCase()}|${nonce.toLowerCase()}`;
  return createHash('sha256').update(subject).digest('hex');
}
