import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type GatewayProcess, prepareGateway } from '../support/gateway-process.ts';
import { askHook } from '../support/hook.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

describe('the end of a gateway', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-lifecycle-'));
  let chain: Chain;
  let backend: SampleBackend;
  let buyer: Buyer;
  let gateway: GatewayProcess;
  let managementUrl: string;

  before(async () => {
    [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
    buyer = await createBuyer(chain);
  });
  after(async () => {
    await Promise.all([chain.stop(), backend.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  beforeEach(async () => {
    const parts = { backendUrl: backend.url, chain, facilitator: { mode: 'local' as const } };
    const prepared = await prepareGateway(folder, parts);
    gateway = await prepared.start({ env: { GATEWAY_DRAIN_SECONDS: '1' } });
    managementUrl = prepared.managementUrl;
    backend.hold();
  });
  afterEach(async () => {
    backend.release();
    await gateway.kill();
  });

  /** Past the second in which new calls are served. */
  const listenerGone = async (): Promise<void> => {
    while (
      await fetch(`${gateway.baseUrl}/health`).then(
        () => true,
        () => false,
      )
    )
      await delay(20);
  };

  const invoke = (id: string): Promise<Response> =>
    buyer.fetch(`${gateway.baseUrl}/api/resources/${id}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });

  it('SIGTERM: a paid call that runs is delivered, new calls are still served for a while, exit 0', async () => {
    const arrived = backend.nextRequest('/held');
    const paid = invoke('held');
    await arrived;
    process.kill(gateway.pid, 'SIGTERM');
    await gateway.logged(({ msg }) => msg === 'draining');
    const meanwhile = await invoke('cities');
    assert.deepEqual([meanwhile.status, meanwhile.headers.get('connection')], [200, 'close']);
    await meanwhile.arrayBuffer();
    const ready = await fetch(`${managementUrl}/ready`);
    const body = (await ready.json()) as { ready: boolean; adapters: unknown };
    assert.deepEqual([ready.status, body.ready], [503, false]);
    assert.deepEqual(body.adapters, [{ name: 'http', status: 'fail', detail: 'draining' }]);
    // The paid call is not.
    await listenerGone();
    backend.release();
    const answer = await paid;
    assert.deepEqual([answer.status, await answer.json()], [200, { held: true }]);
    assert.deepEqual(await gateway.ended, { code: 0, signal: null });
  });

  it('/drain blocks until the last call has ended; SIGTERM after it ends the process at once', async () => {
    const arrived = backend.nextRequest('/held');
    const free = invoke('free_held');
    await arrived;
    let drained = false;
    const hook = askHook(managementUrl, '/drain').then((response) => {
      drained = true;
      return response;
    });
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    assert.equal(drained, false);
    backend.release();
    await (await free).arrayBuffer();
    assert.equal((await hook).status, 200);
    const at = performance.now();
    process.kill(gateway.pid, 'SIGTERM');
    assert.deepEqual(await gateway.ended, { code: 0, signal: null });
    assert.ok(performance.now() - at < 900, 'nothing is waited for a second time');
  });

  it('a call whose body is still coming when the gate closes is not cut off', async () => {
    const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1');
    await once(socket, 'connect');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    const head =
      'POST /api/resources/cities/invoke HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2';
    socket.write(`${head}\r\n\r\n{`);
    process.kill(gateway.pid, 'SIGTERM');
    await gateway.logged(({ msg }) => msg === 'draining');
    await listenerGone();
    socket.write('}');
    await once(socket, 'close');
    assert.match(text, /^HTTP\/1\.1 503 [\s\S]*GATEWAY_BUSY/, 'too late to be served, and refused');
    assert.equal((await gateway.ended).code, 0);
  });

  it('a second signal ends it at once', async () => {
    const arrived = backend.nextRequest('/held');
    const free = invoke('free_held');
    const cut = assert.rejects(free);
    await arrived;
    process.kill(gateway.pid, 'SIGTERM');
    await gateway.logged(({ msg }) => msg === 'draining');
    process.kill(gateway.pid, 'SIGTERM');
    assert.equal((await gateway.ended).code, 1);
    await cut;
  });
});
