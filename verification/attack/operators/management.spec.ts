// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe } from 'node:test';
import { attack, proven } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';

describe('routes that agents must not reach', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target?.stop());

  proven('O11', 'spec/routes/management.spec.ts', 'shares no route with agents but the probes');
  proven('O11', 'spec/routes/management.spec.ts', 'has no route for agents or operators');
  proven(
    'O11',
    'spec/routes/unknown.spec.ts',
    '${path} of the app for ${app} is 404 for every method, with a body, and with a token',
  );

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
