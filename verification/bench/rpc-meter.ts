/** Counts the calls that a program makes to a node of a chain. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const CALL = '"method":';

/** A way to a node that counts. */
export interface RpcMeter {
  readonly url: string;
  /** Calls so far; those of a batch count each. */
  calls(): number;
  stop(): void;
}

/** Passes bytes on both ways without reading more than the names of calls. */
export async function meterRpc(nodeUrl: string): Promise<RpcMeter> {
  const { hostname, port } = new URL(nodeUrl);
  let calls = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    const node = connect({ host: hostname, port: Number(port), noDelay: true });
    // The end of the last chunk, because a name may lie on the border of two.
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1');
      calls += text.split(CALL).length - 1;
      rest = text.slice(-(CALL.length - 1));
      node.write(chunk);
    });
    node.on('data', (chunk: Buffer) => socket.write(chunk));
    for (const [one, other] of [
      [socket, node],
      [node, socket],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    stop: () => void server.close(),
  };
}
