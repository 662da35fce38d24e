import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { send, sharedRoutes } from './world.ts';

const PASSED = (name: string): object => ({ name, status: 'pass' });

for (const app of ['agents', 'management'] as const)
  describe(`the probes of the app for ${app}`, () => {
    const world = sharedRoutes();

    it('/health says that the process is up', async () => {
      await send(world()[app], 'GET', '/health').expect(200, '{"status":"ok"}');
    });

    it('/ready names every component, and is 503 while the process drains', async () => {
      const look = async () => {
        const { status, text } = await send(world()[app], 'GET', '/ready');
        return [status, JSON.parse(text)] as const;
      };
      const ready = {
        store: PASSED('sqlite'),
        backend: PASSED('backend'),
        adapters: ['http', 'mcp', 'a2a', 'acp'].map(PASSED),
        paymentProviders: [PASSED('x402')],
        authorizationProviders: [],
      };
      assert.deepEqual(await look(), [200, { ready: true, ...ready }]);
      await world().lifecycle.drain({ propagationMs: 0, finishMs: 0, stopListening: () => undefined });
      const adapters = ready.adapters.map((check) => ({ ...check, status: 'fail', detail: 'draining' }));
      assert.deepEqual(await look(), [503, { ready: false, ...ready, adapters }]);
      await send(world()[app], 'GET', '/health').expect(200);
    });
  });
