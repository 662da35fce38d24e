import { StoreError } from '../store.ts';

/** `user:password@` of any URL inside a message. */
const CREDENTIALS = /\/\/[^/@\s]*@/g;

/**
 * What a log may know of a failed command: name, message and code. The errors of the client carry the whole command, so also
 * a password of AUTH or a buyer's proof; those properties stay behind.
 */
export function redacted(thrown: unknown): Error {
  const source = thrown instanceof Error ? thrown : new Error(String(thrown));
  const error = new Error(source.message.replaceAll(CREDENTIALS, '//'));
  error.name = source.name;
  const { code } = source as { code?: unknown };
  return typeof code === 'string' ? Object.assign(error, { code }) : error;
}

/** What the client says of a command that it never wrote to a connection, because there was none. */
const NEVER_LEFT = /^(?:Stream isn't writeable|Cluster isn't ready)/;

/** @throws StoreError for whatever the client threw. */
export async function answered<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (thrown) {
    const cause = redacted(thrown);
    throw new StoreError(cause, !NEVER_LEFT.test(cause.message));
  }
}
