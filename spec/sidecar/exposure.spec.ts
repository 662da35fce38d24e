import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { type Exposure, podAddresses, watchExposure } from '../../src/sidecar/exposure.ts';
import { openFullListener } from '../backend/full-listener.ts';

/** The pod's own address in these tests: loopback too, but a private backend has another one. */
const POD = '127.0.0.2';

describe('the watch over the exposed backend', () => {
  const opened: { close(): unknown }[] = [];
  afterEach(() => {
    for (const one of opened.splice(0)) one.close();
  });

  async function backend(host: string, port = 0): Promise<{ readonly server: Server; readonly port: number }> {
    const server = createServer((socket) => socket.on('error', () => undefined));
    opened.push(server);
    server.listen(port, host);
    await once(server, 'listening');
    return { server, port: (server.address() as { port: number }).port };
  }

  /** A watch whose looks are counted, and what it reported so far. */
  function watching(port: number, addresses: readonly string[] = [POD]) {
    const changes: (Exposure | undefined)[] = [];
    let looks = 0;
    const watch = watchExposure({
      port,
      everyMs: 20,
      onChange: (exposure) => changes.push(exposure),
      addresses() {
        looks += 1;
        return addresses;
      },
    });
    opened.push(watch);
    /** Two more looks: a connection takes less than 20 ms here, so the first of them has ended. */
    const looked = async (): Promise<void> => {
      const before = looks;
      while (looks < before + 2) await new Promise((resolve) => setImmediate(resolve));
    };
    return { watch, changes, looked };
  }

  /** What a watch with the usual pause between its looks reports first. */
  function firstFound(port: number, addresses: readonly string[]): Promise<Exposure | undefined> {
    return new Promise((resolve) => {
      opened.push(watchExposure({ port, addresses: () => addresses, onChange: resolve }));
    });
  }

  it('finds a backend at once although the start of the process blocks the event loop', async () => {
    const { port } = await backend('0.0.0.0');
    const found = firstFound(port, [POD]);
    const until = performance.now() + 400;
    while (performance.now() < until);
    assert.deepEqual(await found, { address: POD, port });
  });

  it('does not report a backend that listens on loopback only', async () => {
    const { port } = await backend('127.0.0.1');
    const { watch, changes, looked } = watching(port);
    await looked();
    assert.deepEqual([watch.exposure(), changes], [undefined, []]);
  });

  it('reports a backend on an address of the pod once, and again when it listens there no longer', async () => {
    const { server, port } = await backend(POD);
    const { watch, changes, looked } = watching(port, ['127.0.0.3', POD]);
    await looked();
    await looked();
    assert.deepEqual(watch.exposure(), { address: POD, port });
    server.close();
    await looked();
    await backend('127.0.0.1', port);
    await looked();
    assert.deepEqual(watch.exposure(), undefined);
    assert.deepEqual(changes, [{ address: POD, port }, undefined]);
  });

  it('tries the addresses of the pod that are not loopback, link-local ones with their link', () => {
    const of = (address: string, internal: boolean, scopeid?: number) => ({
      ...{ address, internal, netmask: '', mac: '', cidr: null },
      ...(scopeid === undefined ? { family: 'IPv4' as const } : { family: 'IPv6' as const, scopeid }),
    });
    const interfaces = {
      lo: [of('127.0.0.1', true), of('::1', true, 0)],
      eth0: [of('10.1.2.3', false), of('fd00::1', false, 0), of('fe80::1', false, 2)],
    };
    assert.deepEqual(podAddresses(interfaces), ['10.1.2.3', 'fd00::1', 'fe80::1%eth0']);
  });

  it('looks at start, not only after a minute', async () => {
    const { port } = await backend(POD);
    assert.deepEqual(await firstFound(port, [POD]), { address: POD, port });
  });

  it('gives up an address that never answers after 300 ms, and still finds another one', async () => {
    const full = await openFullListener(POD);
    opened.push(full);
    const { port } = await backend('127.0.0.3', full.port);
    const at = performance.now();
    const found = await firstFound(port, [POD, '127.0.0.3']);
    const waited = performance.now() - at;
    assert.deepEqual(found, { address: '127.0.0.3', port });
    assert.ok(waited >= 290 && waited < 1_000, `${waited} ms`);
  });
});
