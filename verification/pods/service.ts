/**
 * The Service before the pods, as kube-proxy carries it out: each connection gets a pod when it is
 * opened and stays with it, whatever becomes of the endpoints.
 */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A port of this machine that leads to the endpoints in turn. */
export interface Service {
  readonly url: string;
  /** New connections may go there. */
  add(port: number): void;
  /** No new connection goes there; open ones stay. */
  remove(port: number): void;
  endpoints(): readonly number[];
  stop(): Promise<void>;
}

export async function startService(): Promise<Service> {
  const endpoints: number[] = [];
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = endpoints[turn % endpoints.length];
    turn += 1;
    if (port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const pod = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    for (const [one, other] of [
      [client, pod],
      [pod, client],
    ] as const) {
      open.add(one);
      one.once('close', () => open.delete(one));
      one.once('error', () => other.resetAndDestroy());
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add(port) {
      if (!endpoints.includes(port)) endpoints.push(port);
    },
    remove(port) {
      const at = endpoints.indexOf(port);
      if (at >= 0) endpoints.splice(at, 1);
    },
    endpoints: () => endpoints,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
