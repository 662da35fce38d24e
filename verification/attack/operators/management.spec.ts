import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe } from 'node:test';
import { readMetrics } from '../../../spec/support/read-metrics.ts';
import { attack } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';

/** Routes for the operators of a pod only. */
const INTERNAL = [
  '/metrics',
  '/drain',
  '/release',
  '/app-probe/ready',
  '/app-probe/',
  '/debug',
  '/debug/pprof/',
  '/heapdump',
  '/json/list',
];

describe('routes that agents must not reach', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target?.stop());

  attack('O11', 'the listener of the agents has none of the management routes', async () => {
    for (const path of INTERNAL) {
      const answer = await fetch(`${target.url}${path}`, { method: path === '/release' ? 'POST' : 'GET' });
      assert.equal(answer.status, 404, path);
    }
    const drained = await fetch(`${target.url}/ready`);
    assert.equal(drained.status, 200, 'no drain began');
  });

  attack('O11', 'the management listener has no dump, no debugger and no payment records', async () => {
    for (const path of [
      '/debug',
      '/debug/pprof/',
      '/heapdump',
      '/json/list',
      '/api/events',
      '/api/receipts',
      '/api/resources',
      '/mcp',
    ])
      assert.equal((await fetch(`${target.managementUrl}${path}`)).status, 404, path);
    const metrics = await readMetrics(target.managementUrl);
    assert.ok(metrics.includes('# TYPE') && !metrics.includes(target.adminToken));
  });

  attack('O11', 'the process runs without a debugger, and the image starts none', () => {
    assert.doesNotMatch(readFileSync(`/proc/${target.gateway.pid}/cmdline`, 'utf8'), /--(?:inspect|debug)/);
    const dockerfile = readFileSync(new URL('../../../deploy/Dockerfile', import.meta.url), 'utf8');
    assert.doesNotMatch(dockerfile, /--inspect|--heapsnapshot|--debug/);
    assert.match(dockerfile, /--disable-proto=delete/);
  });

  attack('O11', 'a management listener on loopback is reachable over no other address of the machine', async () => {
    const outside = Object.values(networkInterfaces())
      .flatMap((addresses = []) => addresses)
      .filter(({ internal, family }) => !internal && family === 'IPv4');
    const port = Number(new URL(target.managementUrl).port);
    for (const { address } of outside) {
      const reached = await new Promise<boolean>((resolve) => {
        const socket = connect({ host: address, port });
        socket.once('connect', () => resolve(true));
        socket.once('error', () => resolve(false));
        socket.once('close', () => socket.destroy());
        socket.unref();
      });
      assert.equal(reached, false, address);
    }
  });
});
