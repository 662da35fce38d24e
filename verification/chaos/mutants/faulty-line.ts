import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { freePorts } from '../../../spec/support/ports.ts';

/** A line to a unix socket that fails when it is told to. */
export interface FaultyLine {
  /** redis://127.0.0.1:port */
  readonly url: string;
  /**
   * The next request that holds these bytes is carried out; its connection breaks where the reply
   * should come.
   */
  loseReplyTo(bytes: string): void;
  /** Replies lost so far. */
  readonly lost: number;
  stop(): Promise<void>;
}

export async function startFaultyLine(socketPath: string): Promise<FaultyLine> {
  const sockets = new Set<Socket>();
  let wanted: string | undefined;
  let lost = 0;
  const server = createServer((near) => {
    const far = connect(socketPath);
    let losing = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => {
      if (wanted !== undefined && bytes.includes(wanted)) {
        wanted = undefined;
        losing = true;
      }
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (!losing) {
        near.write(bytes);
        return;
      }
      lost += 1;
      near.destroy();
    });
  });
  const [port = 0] = await freePorts(1);
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${port}`,
    loseReplyTo: (bytes) => {
      wanted = bytes;
    },
    get lost() {
      return lost;
    },
    stop,
  };
}
