/** HTTP GET for commands: one line for each way in which a server does not answer. */

import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { UnavailableError } from './program.ts';

/** Longest silence of a server before and within its answer, milliseconds. */
const SILENT_MS = 10_000;
/** Codes of the system for peers, in words. */
const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name service does not answer',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  ETIMEDOUT: 'no connection in time',
};

interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly silentMs?: number;
}

/**
 * The head of the answer, whatever its status; redirects are not followed. `url` has no
 * credentials: messages name its origin.
 * @throws UnavailableError when none comes
 */
export function httpGet(url: string, { headers = {}, signal, silentMs = SILENT_MS }: GetOptions = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { get } = url.startsWith('https:') ? https : http;
  const request = get(url, { headers, agent: false, ...(signal === undefined ? {} : { signal }) }, resolve);
  request.setTimeout(silentMs, () => request.destroy(new Error(`nothing came for ${silentMs / 1_000} s`)));
  request.on('error', (cause) => reject(unanswered(url, cause)));
  return promise;
}

/** The whole body as text. @throws UnavailableError when it breaks off or is larger */
export async function bodyText(url: string, response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
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
  const { code = '', message } = (cause instanceof Error ? cause : new Error(String(cause))) as NodeJS.ErrnoException;
  // Of several addresses of a name, the error has a code and no message.
  return new UnavailableError(`${new URL(url).origin} does not answer: ${FAULTS[code] ?? (message || code)}`, {
    cause,
  });
}
