/** Listens, and tells what was in the way. */

import type { AddressInfo, ListenOptions, Server } from 'node:net';

/** Resolves with the address of the server; rejects with the error of the system. */
export function listenOn(server: Server, at: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}
