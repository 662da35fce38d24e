/** Tells the hooks of a pod, which change what the process does, from requests of web pages. */

import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { ownersOf, singleHeader } from './headers.ts';

/** What the kubelet sends with a hook (`httpHeaders`), and a page only after a preflight. */
const HOOK_HEADER = 'agent-commerce-hook';
const FETCH_METADATA = 'sec-fetch-';

const NO_HOOK = {
  message:
    'This route is for the hooks of the pod: it needs the header Agent-Commerce-Hook with the value of GATEWAY_HOOK_KEY (1 where that is not set), no Origin or Sec-Fetch-* beside it, and as Host an address or localhost.',
  headers: { 'cache-control': 'no-store' },
} as const;

/**
 * Admits requests whose hook header says `key`, and none that a browser sent for a page. A page
 * whose own name is made to point at the pod sends neither Origin nor Sec-Fetch-*, but that name as
 * Host.
 */
export function onlyHooks(key = '1'): RequestHandler {
  const isKey = ownersOf([{ token: key, owner: true }]);
  return function onlyHooks(req, _res, next) {
    const { headers } = req;
    const fromPage =
      headers.origin !== undefined || Object.keys(headers).some((name) => name.startsWith(FETCH_METADATA));
    if (fromPage || !isAddress(singleHeader(req, 'host')) || isKey(singleHeader(req, HOOK_HEADER)) !== true)
      throw new GatewayError('FORBIDDEN', NO_HOOK);
    next();
  };
}

/** The kubelet names the address of the pod, a person on the node perhaps localhost. */
function isAddress(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return name !== undefined && (name === 'localhost' || isIP(name) !== 0);
}
