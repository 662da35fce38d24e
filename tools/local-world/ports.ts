/** The ports of a local world. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { LOCAL_RPC_PORT } from '../../src/payments/pricing/networks.ts';

/** A port each for agents and operators, for probes and metrics, and for JSON-RPC of the chain. */
export interface WorldPorts {
  readonly agents: number;
  readonly management: number;
  readonly rpc: number;
}

/** Unless others are given; clients know 8545 as the port of a local chain. */
export const WORLD_PORTS: WorldPorts = { agents: 8402, management: 8403, rpc: LOCAL_RPC_PORT };

/** How each is moved where it is taken, such as `Use --port for another one.` */
export type MovedBy = Readonly<Record<keyof WorldPorts, string>>;

/**
 * Refuses ports that something listens on, but for those that the world has already.
 * @throws Error in one line that says how to move it
 */
export async function requireFree(ports: WorldPorts, movedBy: MovedBy, own?: WorldPorts): Promise<void> {
  for (const [name, port] of Object.entries(ports) as readonly [keyof WorldPorts, number][]) {
    if (own !== undefined && own[name] === port) continue;
    await requireFreePort(port, movedBy[name]);
  }
}

/** The same for one port. */
export async function requireFreePort(port: number, movedBy: string): Promise<void> {
  const server = await listening(port);
  if (server === undefined) throw new Error(`Port ${port} is taken. ${movedBy}`);
  await closed(server);
}

/** A port of 127.0.0.1 on which nothing listens now. */
export async function freePort(): Promise<number> {
  const server = await listening(0);
  if (server === undefined) throw new Error('no port is free');
  const { port } = server.address() as AddressInfo;
  await closed(server);
  return port;
}

/** Undefined when the port is taken. */
async function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
