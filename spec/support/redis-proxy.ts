import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';

/** A line to a server that can lose answers, or be cut. */
export interface RedisLine {
  readonly port: number;
  /**
   * The next answer is lost: what is sent reaches the server, its first answer is swallowed and
   * that connection ends. Resolves when it happened.
   */
  loseReply(): Promise<void>;
  /** Ends all connections and lets none be made; what is on its way is gone. */
  cut(): void;
  mend(): void;
  stop(): Promise<void>;
}

/** Opens the line on a port of 127.0.0.1. */
export async function startLine(server: NetConnectOpts): Promise<RedisLine> {
  const open = new Set<Socket>();
  let lost: (() => void) | undefined;
  let whole = true;
  const listener = createServer((client) => {
    if (!whole) {
      client.destroy();
      return;
    }
    const upstream = connect(server);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (answer) => {
      if (lost === undefined) {
        client.write(answer);
        return;
      }
      const told = lost;
      lost = undefined;
      client.destroy();
      told();
    });
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const endAll = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (listener.address() as AddressInfo).port,
    loseReply: () =>
      new Promise((resolve) => {
        lost = resolve;
      }),
    cut() {
      whole = false;
      endAll();
    },
    mend() {
      whole = true;
    },
    async stop() {
      const closed = once(listener, 'close');
      listener.close();
      endAll();
      await closed;
    },
  };
}
