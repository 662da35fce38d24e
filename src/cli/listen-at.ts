import type { AddressInfo } from 'node:net';
import type { Listener } from '../server/listener/listen.ts';

/** What the system says of an address, and which of its two settings is to blame. */
const FAULTS: Readonly<Record<string, readonly [setting: 'host' | 'port', why: string]>> = {
  EADDRINUSE: ['port', 'is taken by another process'],
  EACCES: ['port', 'may not be opened by this user'],
  EADDRNOTAVAIL: ['host', 'is no address of this machine'],
};

/** Starts to listen where that section of the configuration says.  @throws Error that names the setting and the address */
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
