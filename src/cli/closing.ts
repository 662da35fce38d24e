/** Addresses that are listened on, and the order in which everything is closed again. */

import type { AddressInfo } from 'node:net';
import type { Listener } from '../server/listener/listen.ts';
import type { Log } from '../telemetry/log/log.ts';

/** Returned by a closer whose part may keep the process alive, as an exporter without collector. */
export const MAY_LINGER = Symbol('may linger');

/** Error codes of the system for an address, and the setting that causes each. */
const FAULTS: Readonly<Record<string, readonly [setting: 'host' | 'port', why: string]>> = {
  EADDRINUSE: ['port', 'is taken by another process'],
  EACCES: ['port', 'may not be opened by this user'],
  EADDRNOTAVAIL: ['host', 'is no address of this machine'],
};

/** Closers, in the order of opening. */
export type Opened = (() => unknown)[];

/** Listens at the address of a section. @throws Error that names the setting and the address */
export async function listenAt(
  listener: Pick<Listener, 'listen'>,
  section: 'server' | 'management',
  { host, port }: { readonly host: string; readonly port: number },
): Promise<AddressInfo> {
  try {
    return await listener.listen(host, port);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
    const fault = FAULTS[code];
    if (fault === undefined) throw cause;
    const [setting, why] = fault;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    throw new Error(`${section}.${setting}: ${address} ${why} (${code})`, { cause });
  }
}

/**
 * Last opened, first closed; also when opening failed half-way, or a listener without its sibling
 * would keep on answering.
 */
export async function closed(opened: Opened, log: Log): Promise<void> {
  let mayLinger = false;
  for (const close of opened.reverse())
    try {
      mayLinger = (await close()) === MAY_LINGER || mayLinger;
    } catch (error) {
      log.warn({ err: error }, 'closing failed');
    }
  // Not before the caller has logged its last lines and set the exit code.
  if (mayLinger) setImmediate(() => process.exit());
}
