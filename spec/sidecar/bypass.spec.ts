import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { type BypassWatch, type Exposure, podAddresses, watchBypass } from '../../src/sidecar/bypass.ts';

/**
 * Stands for the pod's own address: also loopback, but not the one that a careful merchant listens
 * on.
 */
const POD = '127.0.0.2';

describe('the way round the gateway', () => {
  const opened: { close(): unknown }[] = [];
  afterEach(() => {
    for (const one of opened.splice(0)) one.close();
  });

  async function merchant(host: string, port = 0): Promise<{ readonly server: Server; readonly port: number }> {
    const server = createServer((socket) => socket.on('error', () => undefined));
    opened.push(server);
    server.listen(port, host);
    await once(server, 'listening');
    return { server, port: (server.address() as { port: number }).port };
  }

  /** A watch whose looks are told, and what it said so far. */
  function watching(port: number, addresses: readonly string[] = [POD]) {
    const changes: (Exposure | undefined)[] = [];
    let looks = 0;
    const watch: BypassWatch = watchBypass({
      port,
      everyMs: 20,
      onChange: (exposure) => changes.push(exposure),
      addresses() {
        looks += 1;
        return addresses;
      },
    });
    opened.push(watch);
    /** A look begins when the one before is over: its connections take no 20 ms here. */
    const looked = async (): Promise<void> => {
      const before = looks;
      while (looks < before + 2) await new Promise((resolve) => setImmediate(resolve));
    };
    return { watch, changes, looked };
  }

  it('a merchant that listens on loopback only is not exposed', async () => {
    const { port } = await merchant('127.0.0.1');
    const { watch, changes, looked } = watching(port);
    await looked();
    assert.deepEqual([watch.exposure(), changes], [undefined, []]);
  });

  it('a merchant that listens on an address of the pod is, is told of once, and again when it is put right', async () => {
    const { server, port } = await merchant(POD);
    const { watch, changes, looked } = watching(port, ['127.0.0.3', POD]);
    await looked();
    await looked();
    assert.deepEqual(watch.exposure(), { address: POD, port });
    server.close();
    await looked();
    await merchant('127.0.0.1', port);
    await looked();
    assert.deepEqual(watch.exposure(), undefined);
    assert.deepEqual(changes, [{ address: POD, port }, undefined]);
  });

  it('the addresses of the pod are those that are not loopback, link-local ones with their link', () => {
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

  it('looks at once, and not only after a minute', async () => {
    const { port } = await merchant(POD);
    const found = await new Promise<Exposure | undefined>((resolve) => {
      opened.push(watchBypass({ port, addresses: () => [POD], onChange: resolve }));
    });
    assert.deepEqual(found, { address: POD, port });
  });

  it('an address that never answers is given up after 300 ms, and hides no other', async () => {
    const { port, close } = await deaf(POD);
    opened.push({ close });
    await merchant('127.0.0.3', port);
    const at = performance.now();
    const found = await new Promise<Exposure | undefined>((resolve) => {
      opened.push(watchBypass({ port, addresses: () => [POD, '127.0.0.3'], onChange: resolve }));
    });
    const waited = performance.now() - at;
    assert.deepEqual(found, { address: '127.0.0.3', port });
    assert.ok(waited >= 290 && waited < 1_000, `${waited} ms`);
  });
});

/** Listens, accepts nobody, and has its queue full: further connections wait for ever. */
async function deaf(host: string): Promise<{ readonly port: number; close(): void }> {
  const thread = new Worker(
    `const { createServer } = require('node:net');
     const { parentPort, workerData } = require('node:worker_threads');
     const server = createServer().listen({ port: 0, host: workerData, backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true, workerData: host },
  );
  const [port] = (await once(thread, 'message')) as [number];
  const waiting = Array.from({ length: 4 }, () => connect(port, host).on('error', () => undefined));
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')));
  return {
    port,
    close() {
      for (const socket of waiting) socket.destroy();
      void thread.terminate();
    },
  };
}
