/** HTTP GET for commands: one line for each way in which a server does not answer. */

import { Client, type Dispatcher } from 'undici';
import { UnavailableError } from './program.ts';

/** Longest silence of a server before and within its answer, milliseconds. */
const SILENT_MS = 10_000;
/** Errors of the system and of the client library, by code, in words. */
const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name service does not answer',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  ETIMEDOUT: 'no connection in time',
  UND_ERR_SOCKET: 'it closed the connection',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'it closed the connection',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'its answer stopped',
  // This error has no code: a chunked body was cut.
  'Response does not match the HTTP/1.1 protocol (Invalid EOF state)': 'it closed the connection',
};

interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly silentMs?: number;
}

/**
 * Resolves with the answer, whatever its status; redirects are not followed. The caller reads or
 * destroys its body. `url` has no credentials: messages name its origin.
 * @throws UnavailableError when no answer comes
 */
export async function httpGet(
  url: string,
  { headers = {}, signal, silentMs = SILENT_MS }: GetOptions = {},
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  const limits = { connectTimeout: silentMs, headersTimeout: silentMs, bodyTimeout: silentMs };
  const client = new Client(origin, { ...limits, allowH2: false });
  try {
    const path = pathname + search;
    const answer = await client.request({ method: 'GET', path, headers, signal: signal ?? null, reset: true });
    void client.close();
    // A body that is destroyed before it was read fails, and nothing waits for that.
    answer.body.on('error', () => undefined);
    return answer;
  } catch (cause) {
    void client.destroy();
    throw unanswered(url, cause);
  }
}

/** The whole body as text. @throws UnavailableError when it breaks off or is larger */
export async function bodyText(url: string, { body }: Dispatcher.ResponseData, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.byteLength;
      if (length > maxBytes) throw new Error(`its answer is larger than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
  } catch (cause) {
    throw unanswered(url, cause);
  }
  return Buffer.concat(chunks).toString();
}

/** The error of a server without an answer, in one line. */
export function unanswered(url: string, cause: unknown): UnavailableError {
  return new UnavailableError(`${new URL(url).origin} does not answer: ${faultOf(cause)}`, { cause });
}

/** Why a connection gave no answer, or not all of it. */
export function faultOf(cause: unknown): string {
  const { code = '', message } = (cause instanceof Error ? cause : new Error(String(cause))) as NodeJS.ErrnoException;
  // The error of a name with several addresses has a code and no message.
  return FAULTS[code] ?? FAULTS[message] ?? (message || code);
}
