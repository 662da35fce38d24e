import { inTime } from '../../time/time.ts';
import { StoreError } from '../port/store.ts';

/** After this long without an answer a command has failed with an unknown outcome, milliseconds. */
const DUE_MS = 500;

/** `user:password@` of any URL inside a message. */
const CREDENTIALS = /\/\/[^/@\s]*@/g;

/**
 * What a log may know of a failed command: name, message and code. The errors of the client carry
 * the whole command, so also a password of AUTH or a buyer's proof; those properties stay behind.
 */
export function redacted(thrown: unknown): Error {
  const source = thrown instanceof Error ? thrown : new Error(String(thrown));
  const error = new Error(source.message.replaceAll(CREDENTIALS, '//'));
  error.name = source.name;
  const { code } = source as { code?: unknown };
  return typeof code === 'string' ? Object.assign(error, { code }) : error;
}

/**
 * What the client says of a command that it never wrote to a connection, because there was none.
 */
const NEVER_LEFT = /^(?:Stream isn't writeable|Cluster isn't ready)/;

/**
 * What the server replies to a command that was just sent. `waitsMs`: how long the command may wait
 * there, milliseconds.
 * @throws StoreError for whatever the client threw, and when no reply is there in time
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
