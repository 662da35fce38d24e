/** Refuses a Host that names no host: sites write links from it, and caches keep them. */

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { GatewayError } from '../errors.ts';

const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?$/i;
/** Of a name in DNS, and its port. */
const MAX_LENGTH = 260;
const MAX_PORT = 65_535;

/** Undefined: it is a name or an address with an optional port, or there is none. */
export function hostRefused({ headers: { host = '' } }: IncomingMessage): GatewayError | undefined {
  if (host === '') return undefined;
  const [matched, address, port = '1'] = (host.length <= MAX_LENGTH && HOST.exec(host)) || [];
  const valid = matched !== undefined && (address === undefined || isIPv6(address)) && Number(port) <= MAX_PORT;
  if (valid && Number(port) > 0) return undefined;
  return new GatewayError('INPUT_INVALID', {
    message: 'Host must be a name or an address, with an optional port from 1 to 65535.',
    details: { reason: 'host_invalid' },
  });
}
