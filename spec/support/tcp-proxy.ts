/** A TCP proxy between a program and a server of the local world, which delays, cuts or drops. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';

/** Bytes on their way through the proxy. */
export interface Piece {
  readonly bytes: Buffer;
  readonly direction: 'request' | 'reply';
  /** The client's socket, one for all pieces of a connection. */
  readonly client: Socket;
  readonly from: Socket;
  readonly into: Socket;
  /** Hands the bytes on; what follows waits when the receiver is slow. */
  pass(): void;
}

/** A proxy on a port of 127.0.0.1. */
export interface TcpProxy {
  readonly port: number;
  /**
   * The next reply is lost, or the one to the next request that holds `bytes`: the server acts, and
   * the connection ends instead of its reply. Resolves when it happened.
   */
  loseReply(bytes?: string): Promise<void>;
  /** Ends all connections and refuses new ones; what is on its way is gone. */
  cut(): void;
  /** Accepts connections again. */
  mend(): void;
  stop(): Promise<void>;
}

/** Opens a proxy to a server; `carry` decides what becomes of each piece. */
export async function startTcpProxy(
  server: NetConnectOpts,
  carry: (piece: Piece) => void = (piece) => piece.pass(),
): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let whole = true;
  let loss: { readonly bytes: string; client?: Socket; readonly done: () => void } | undefined;
  const losesReply = ({ bytes, direction, client }: Piece): boolean => {
    if (loss === undefined) return false;
    if (direction === 'request') {
      if (loss.client === undefined && loss.bytes !== '' && bytes.includes(loss.bytes)) loss.client = client;
      return false;
    }
    return loss.bytes === '' || loss.client === client;
  };
  const move = (piece: Piece): void => {
    if (!losesReply(piece)) {
      carry(piece);
      return;
    }
    const done = loss?.done;
    loss = undefined;
    piece.client.destroy();
    done?.();
  };
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
    for (const [direction, from, into] of [
      ['request', client, upstream],
      ['reply', upstream, client],
    ] as const) {
      from.on('data', (bytes: Buffer) =>
        move({ bytes, direction, client, from, into, pass: () => pass(bytes, from, into) }),
      );
      from.once('end', () => into.end());
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const endAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (listener.address() as AddressInfo).port,
    loseReply: (bytes = '') =>
      new Promise((done) => {
        loss = { bytes, done };
      }),
    cut() {
      whole = false;
      endAll();
    },
    mend() {
      whole = true;
    },
    async stop() {
      if (!listener.listening) return;
      const closed = once(listener, 'close');
      listener.close();
      endAll();
      await closed;
    },
  };
}

function pass(bytes: Buffer, from: Socket, into: Socket): void {
  if (into.write(bytes)) return;
  from.pause();
  into.once('drain', () => from.resume());
}
