/** A listener whose queue is full: like an unreachable host it takes no connection. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';

/** A backlog of 1 holds two connections. */
const FILLERS = 2;

/** Listens, accepts nothing and has its queue full: the kernel ignores further connections. */
export async function openFullListener(host: string): Promise<{ readonly port: number; close(): Promise<unknown> }> {
  const source = `
    const { parentPort, workerData: host } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host, backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const worker = new Worker(source, { eval: true, workerData: host });
  const [port] = (await once(worker, 'message')) as [number];
  const fillers = Array.from({ length: FILLERS }, () => connect(port, host).on('error', () => undefined));
  await Promise.all(fillers.map((filler) => once(filler, 'connect')));
  return {
    port,
    close() {
      for (const filler of fillers) filler.destroy();
      return worker.terminate();
    },
  };
}
