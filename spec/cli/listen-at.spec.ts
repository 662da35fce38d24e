import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import express from 'express';
import { listenAt } from '../../src/cli/serve.ts';
import { createListener } from '../../src/server/listener/listen.ts';

/** A listener on a system that answers so. */
function refusing(code: string) {
  return { listen: () => Promise.reject(Object.assign(new Error(`listen ${code}`), { code })) };
}

describe('an address that cannot be listened on', () => {
  it('of another machine names the host', async () => {
    const listener = createListener({ app: express(), onRefused: () => undefined });
    await assert.rejects(listenAt(listener, 'server', { host: '203.0.113.1', port: 8402 }), {
      message: 'server.host: 203.0.113.1:8402 is no address of this machine (EADDRNOTAVAIL)',
    });
  });

  const REFUSALS = [
    ['EADDRINUSE', '::1', 'management.port: [::1]:80 is taken by another process (EADDRINUSE)'],
    ['EACCES', '0.0.0.0', 'management.port: 0.0.0.0:80 may not be opened by this user (EACCES)'],
    ['EMFILE', '0.0.0.0', 'listen EMFILE'],
  ] as const;
  for (const [code, host, message] of REFUSALS)
    it(`${code} on ${host} is told as "${message}"`, () =>
      assert.rejects(listenAt(refusing(code), 'management', { host, port: 80 }), { message }));
});
