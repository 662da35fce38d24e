/** Turns failed and late commands into StoreErrors that are safe to log. */

import { inTime } from '../../time/time.ts';
import { StoreError } from '../port/store-error.ts';

/** A command without an answer after this time has failed, its outcome unknown, milliseconds. */
const DUE_MS = 500;

/** `user:password@` of any URL inside a message. */
const CREDENTIALS = /\/\/[^/@\s]*@/g;

/**
 * Name, message and code of an error. The client's errors carry the whole command too, which may
 * hold a password of AUTH or a buyer's proof.
 */
export function redacted(thrown: unknown): Error {
  const source = thrown instanceof Error ? thrown : new Error(String(thrown));
  const error = new Error(source.message.replaceAll(CREDENTIALS, '//'));
  error.name = source.name;
  const { code } = source as { code?: unknown };
  return typeof code === 'string' ? Object.assign(error, { code }) : error;
}

/** The client's error for a command that it never wrote, because there was no connection. */
const NEVER_LEFT = /^(?:Stream isn't writeable|Cluster isn't ready)/;

/**
 * The server's reply. `waitsMs`: how long the command may wait on the server, milliseconds.
 * @throws StoreError for every error of the client, and for a late reply
 */
export async function answered<T>(reply: Promise<T>, waitsMs = 0): Promise<T> {
  try {
    return await inTime(reply, waitsMs + DUE_MS, timedOut);
  } catch (thrown) {
    const cause = redacted(thrown);
    throw new StoreError(cause, !NEVER_LEFT.test(cause.message));
  }
}

function timedOut(): never {
  throw new Error('Command timed out');
}
