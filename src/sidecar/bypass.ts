import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Between two looks, milliseconds. */
const LOOK_EVERY_MS = 60_000;
/** Longest wait for one connection, milliseconds. */
const CONNECT_MS = 300;
/** Most addresses of the pod that are tried in one look. */
const MAX_ADDRESSES = 16;

/** Where the merchant's service was reached although only the gateway should be able to. */
export interface Exposure {
  readonly address: string;
  readonly port: number;
}

/** The watch over the way round the gateway. */
export interface BypassWatch {
  /**
   * What the last look found; undefined when the merchant can be reached through the gateway only.
   */
  exposure(): Exposure | undefined;
  close(): void;
}

/**
 * A merchant on loopback that listens on every address can be called past the gateway by anyone who
 * reaches the pod, without paying. So the gateway itself tries, at start and every minute, to reach
 * the merchant's port on the pod's own addresses. `onChange` hears when that begins to succeed, and
 * with undefined when it no longer does.
 */
export function watchBypass(options: {
  /** The merchant's. */
  readonly port: number;
  readonly onChange: (exposure: Exposure | undefined) => void;
  /** Asked before each look; default: every address of the pod that is not loopback. */
  readonly addresses?: () => readonly string[];
  readonly everyMs?: number;
}): BypassWatch {
  const { port, onChange, addresses = podAddresses, everyMs = LOOK_EVERY_MS } = options;
  let found: Exposure | undefined;
  let closed = false;

  const look = async (): Promise<void> => {
    const tried = addresses().slice(0, MAX_ADDRESSES);
    const reached = await Promise.all(tried.map((address) => reaches(address, port)));
    if (closed) return;
    const address = tried.find((_, index) => reached[index]);
    const before = found;
    found = address === undefined ? undefined : { address, port };
    if ((before === undefined) !== (found === undefined)) onChange(found);
  };
  void look();
  // A look is bounded by its connections, so the next one never meets it.
  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return {
    exposure: () => found,
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}

/** Whether somebody accepts a connection there. Nothing is sent. */
function reaches(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const end = (reached: boolean) => (): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.once('connect', end(true));
    socket.once('timeout', end(false));
    socket.once('error', end(false));
    socket.unref();
  });
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
