/** Hunts that need two gateways over one store. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { resetConnection, serveHttp } from '../../../spec/support/http-server.ts';
import { startSampleBackend } from '../../../spec/support/sample-backend.ts';
import { ask, insist, send, signedCall } from '../steps/buyer.ts';
import { openSite } from '../steps/site.ts';
import { assertExecuted, type Stage } from './stage.ts';

const SHIFT_CLOCK = join(import.meta.dirname, 'shift-clock.ts');
/** Longer than a lease, shorter than a proof lives. */
const CLOCK_SHIFT_MS = 30_000;

/**
 * A gateway is paused for longer than its lease; when it wakes up its delivery fails, while its
 * replica is delivering.
 */
export async function wakeLate(stage: Stage): Promise<void> {
  const backend = stage.keep(await startSampleBackend());
  const ground = { ...stage.ground, merchant: backend };
  // It accepts connections, so the gateway takes payments, and closes them at the first byte.
  const silent = stage.keep(await serveHttp(async ({ response }) => resetConnection(response)));
  const overrides = { backend: { baseUrl: silent.url } };
  const frozen = await openSite(ground, { store: 'redis', rail: 'local', overrides });
  const other = await openSite(ground, { store: 'redis', rail: 'local', beside: frozen });
  const [sleeper] = await Promise.all([
    stage.start(frozen, { halt: { at: 'forwarding', signal: 'SIGSTOP' } }),
    stage.start(other),
  ]);
  const call = await signedCall(ground, frozen, 'held', {});
  const waiting = ask(call, frozen.baseUrl);
  // The reconciler of the replica takes over as soon as the lease is over.
  const reached = backend.nextRequest('/held');
  await sleeper.logged((line) => line['halt'] === 'forwarding');
  await reached;

  process.kill(sleeper.pid, 'SIGCONT');
  assert.equal((await waiting).error?.code, 'BACKEND_ERROR');
  const again = backend.nextRequest('/held');
  await Promise.race([again, send(call, other.baseUrl)]);
  assertExecuted(ground, call, 1, 'a stale write does not end the lease');
  backend.release();
  assert.equal((await insist(call, other.baseUrl)).status, 200);
}

/** A replica whose clock is ahead gets a copy of a call that runs. */
export async function shiftClock(stage: Stage): Promise<void> {
  const backend = stage.keep(await startSampleBackend());
  const ground = { ...stage.ground, merchant: backend };
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  const ahead = await openSite(ground, { store: 'redis', rail: 'local', beside: site });
  await Promise.all([
    stage.start(site),
    stage.start(ahead, { execArgv: ['--import', SHIFT_CLOCK], env: { CLOCK_SHIFT_MS: String(CLOCK_SHIFT_MS) } }),
  ]);
  const call = await signedCall(ground, site, 'held', {});
  const reached = backend.nextRequest('/held');
  const running = send(call, site.baseUrl);
  await reached;
  const again = backend.nextRequest('/held');
  await Promise.race([again, send(call, ahead.baseUrl)]);
  assertExecuted(ground, call, 1, 'a running call is left alone');
  backend.release();
  assert.equal((await running)?.status, 200);
}
