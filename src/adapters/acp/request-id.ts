import type { IncomingMessage } from 'node:http';
import { readHeader } from '../../server/http/headers.ts';

/** Longest echo, characters. */
const MAX_ECHO = 128;
const PRINTABLE = /^[ -~]+$/;

/**
 * The caller's own id of the request, as it is echoed and told to the merchant (acp 2.1): never an error, and never the name of
 * anything here. Undefined when there is none that can be echoed.
 */
export function callerRequestIdOf(req: IncomingMessage): string | undefined {
  const given = readHeader(req, 'request-id');
  if (given.kind !== 'single' || !PRINTABLE.test(given.value)) return undefined;
  return given.value.slice(0, MAX_ECHO).trimEnd();
}
