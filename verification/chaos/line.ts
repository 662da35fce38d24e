import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import type { Seed } from './seed.ts';
import type { Weather } from './weather.ts';

/** A line between two programs of the world, on a port of 127.0.0.1. */
export interface Line {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * What happens to a piece that crosses: it ends the connection, comes late, or arrives in part
 * before the connection ends.
 */
const FAULTS = ['cut', 'delayed', 'truncated'] as const;
const LATE_MS = [50, 1_500] as const;

/**
 * Opens a line to a server. Every piece of bytes that crosses, in either direction, meets the
 * weather of `party` at the rate given; the order of bytes never changes.
 */
export async function openLine(to: NetConnectOpts, party: string, rate: number, weather: Weather): Promise<Line> {
  const open = new Set<Socket>();
  const listener = createServer((client) => {
    const upstream = connect(to);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (piece: Buffer) => cross(from, into, piece));
      from.once('end', () => into.end());
    }
  });
  const cross = (from: Socket, into: Socket, piece: Buffer): void => {
    const fault = weather.strike(party, '', rate, FAULTS);
    switch (fault?.kind) {
      case 'cut':
        from.destroy();
        break;
      case 'truncated':
        into.write(piece.subarray(0, partOf(piece, fault.seed)), () => from.destroy());
        break;
      case 'delayed':
        // What follows waits behind it.
        from.pause();
        setTimeout(
          () => {
            into.write(piece);
            from.resume();
          },
          fault.seed.between(...LATE_MS),
        );
        break;
      default:
        if (!into.write(piece)) {
          from.pause();
          into.once('drain', () => from.resume());
        }
    }
  };
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    async stop() {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function partOf(piece: Buffer, seed: Seed): number {
  return Math.floor(seed.between(0, piece.byteLength));
}
