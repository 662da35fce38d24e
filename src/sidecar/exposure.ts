/** Watches whether the backend can be called past the gateway; the wiring reports the result. */

import { networkInterfaces } from 'node:os';
import { tryConnection } from './pod-hooks.ts';

/** Between two looks, milliseconds. */
const LOOK_EVERY_MS = 60_000;
/** Longest wait for one connection, milliseconds. */
const CONNECT_MS = 300;
/** Most addresses of the pod that are tried in one look. */
const MAX_ADDRESSES = 16;

/** An address at which the backend was reached, although only the gateway should reach it. */
export interface Exposure {
  readonly address: string;
  readonly port: number;
}

/**
 * A backend on loopback that listens on every address can be called past the gateway, without
 * paying, from wherever the pod can be reached. So the gateway itself tries, at start and every
 * minute, to reach the backend's port on the pod's own addresses. `onChange` gets the exposure when
 * a look first finds one, and undefined when a look finds none any more.
 */
export function watchExposure(options: {
  /** The port of the backend. */
  readonly port: number;
  readonly onChange: (exposure: Exposure | undefined) => void;
  /** Called before each look; default: every address of the pod that is not loopback. */
  readonly addresses?: () => readonly string[];
  readonly everyMs?: number;
}) {
  const { port, onChange, addresses = podAddresses, everyMs = LOOK_EVERY_MS } = options;
  let found: Exposure | undefined;
  let closed = false;

  const look = async (): Promise<void> => {
    const seen = await findExposure(port, addresses());
    if (closed) return;
    const before = found;
    found = seen;
    if ((before === undefined) !== (found === undefined)) onChange(found);
  };
  void look();
  // A look is bounded by its connections, so it has ended when the next one begins.
  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return {
    /** The finding of the last look; undefined when only the gateway reaches the backend. */
    exposure: () => found,
    close(): void {
      closed = true;
      clearInterval(timer);
    },
  };
}

/** One look: the first of these addresses at which the backend's port is reached. */
export async function findExposure(port: number, addresses = podAddresses()): Promise<Exposure | undefined> {
  const tried = addresses.slice(0, MAX_ADDRESSES);
  const ends = await Promise.all(tried.map((address) => tryConnection(address, port, CONNECT_MS)));
  const address = tried.find((_, index) => ends[index] === 'opened');
  return address === undefined ? undefined : { address, port };
}

/** Every address of the pod that others may reach. */
export function podAddresses(
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces(),
): readonly string[] {
  return Object.entries(interfaces).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal }) => !internal)
      // A link-local address means nothing without the name of its link.
      .map(({ address, scopeid }) => (scopeid ? `${address}%${name}` : address)),
  );
}
