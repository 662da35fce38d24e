import type { BackendRequest } from '../../backend/types.ts';
import { isSealed } from '../../crypto/sealed-text.ts';
import { UnreadableRecord } from './unreadable-record.ts';

/** What a record keeps of the request to the merchant. Body as base64. */
interface StoredRequest {
  readonly method: BackendRequest['method'];
  readonly path: string;
  readonly contentType?: string | undefined;
  readonly body?: string | undefined;
}

/** Configured headers stay out: they may hold the merchant's secrets and are added again from the configuration. */
export function storedRequest({ method, path, headers, body }: BackendRequest): string {
  return JSON.stringify({
    method,
    path,
    contentType: headers['content-type'],
    body: body === undefined ? undefined : Buffer.from(body).toString('base64'),
  } satisfies StoredRequest);
}

/** The method of the request that was paid for; undefined: it is sealed with a key that is not here. */
export function storedMethod(stored: string): BackendRequest['method'] | undefined {
  return isSealed(stored) ? undefined : readStoredRequest(stored, {}).method;
}

/**
 * The request that was paid for, with the headers that are configured now.
 * @throws UnreadableRecord
 */
export function readStoredRequest(stored: string, configured: Readonly<Record<string, string>>): BackendRequest {
  if (isSealed(stored)) throw new UnreadableRecord('backendRequest');
  // Written by this gateway from a request that it had built.
  const { method, path, contentType, body } = JSON.parse(stored) as StoredRequest;
  return {
    method,
    path,
    headers: { ...configured, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
    body: body === undefined ? undefined : Buffer.from(body, 'base64'),
  };
}
