import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { askHook, type HookAnswer } from '../support/hook.ts';
import { eventually, receiptWhen } from '../support/records.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { seriesIn } from '../telemetry/scrape.ts';
import { type Brought, bring, failure } from './bring.ts';

const INPUT = { city: 'Berlin' };
/** How long a call may run on in these drains, milliseconds. */
const FINISH_MS = 100;

let testbed: Testbed;
let returned: SampleBackend | undefined;

async function open(parts: Parameters<typeof openTestbed>[0] = {}): Promise<Testbed> {
  testbed = await openTestbed(parts);
  testbed.backend.hold();
  return testbed;
}

afterEach(async () => {
  testbed.backend.release();
  await testbed.close();
  await returned?.stop();
  returned = undefined;
});

/** A paid call that the backend has and does not answer. */
async function heldCall(id: string, requestId: string, proof?: string): Promise<{ readonly ended: Promise<Brought> }> {
  const { gateway, backend } = testbed;
  const arrived = backend.nextRequest('/held');
  const ended = bring(gateway, id, {}, { proof: proof ?? (await testbed.proof(id)), requestId });
  await arrived;
  return { ended };
}

describe('a call that outlives the drain', () => {
  it('is answered 502 with its PAYMENT-RESPONSE, and its receipt says that it was not delivered', async () => {
    const { gateway } = await open({ signalComesMs: 50 });
    for (const id of ['held', 'held_post']) {
      const requestId = `outlived-${id}`;
      const { ended } = await heldCall(id, requestId);
      await gateway.drain(FINISH_MS);
      const answer = await ended;
      const { details, retryable } = failure(answer, 502, 'BACKEND_ERROR');
      assert.equal(details.state, 'undelivered');
      assert.equal(retryable, id === 'held', 'a POST that the backend may have is not repeated');
      assert.equal(answer.payment?.success, true);
      // The one that reads its receipt reads it once the gateway is open again.
      await eventually(async () => (gateway.state() === 'open' ? true : undefined), 'the gateway to be open');
      const receipt = await receiptWhen(gateway, requestId, false);
      assert.deepEqual([receipt.delivered, receipt.payment?.status], [false, 'settled']);
    }
  });
});

describe('a drained gateway that gets no signal', () => {
  it('listens again on the same address, is ready, and sells', async () => {
    const { gateway, backend } = await open({ signalComesMs: 50 });
    backend.release();
    await gateway.drain(FINISH_MS);
    await eventually(async () => (gateway.state() === 'open' ? true : undefined), 'the gateway to be open');
    for (const path of ['/ready', '/health']) assert.equal((await fetch(`${gateway.url}${path}`)).status, 200);
    assert.equal((await fetch(`${gateway.managementUrl}/routing`)).status, 200);
    const stream = await gateway.operator('/api/events/stream');
    assert.equal(stream.status, 200);
    await stream.body?.cancel();
    const sold = await bring(gateway, 'held', {}, { proof: await testbed.proof('held') });
    assert.equal(sold.status, 200);
    await gateway.drain(FINISH_MS);
    await assert.rejects(fetch(`${gateway.url}/health`), 'the second drain closes it again');
  });
});

describe('a backend that restarts alone', () => {
  const back = async (): Promise<void> => {
    returned = await startSampleBackend({ port: Number(new URL(testbed.backend.url).port) });
    returned.release();
  };
  const series = async (name: string): Promise<number | undefined> =>
    seriesIn(await testbed.gateway.metrics.text()).get(name);
  const fenced = (): Promise<true> =>
    eventually(async () => ((await series('acg_lifecycle{state="fenced"}')) === 1 ? true : undefined), 'the fence');
  /** Asks for the release, and notes when it is answered. */
  const released = (): { readonly answer: Promise<HookAnswer>; answered: boolean } => {
    const asked = { answer: askHook(testbed.gateway.managementUrl, '/release'), answered: false };
    void asked.answer.then(() => {
      asked.answered = true;
    });
    return asked;
  };

  it('is kept until the last sale has its answer', async () => {
    const { gateway, backend } = await open();
    const { ended } = await heldCall('held_post', 'kept');
    const hook = released();
    await fenced();
    await pause(200);
    assert.equal(hook.answered, false);
    backend.release();
    assert.equal((await ended).status, 200);
    const { status, body, headers } = await hook.answer;
    assert.deepEqual([status, body, headers['cache-control']], [200, '{"status":"released"}', 'no-store']);
    assert.equal((await fetch(`${gateway.managementUrl}/routing`)).status, 503, 'the pod gets no calls meanwhile');
    assert.equal((await fetch(`${gateway.managementUrl}/ready`)).status, 200);
  });

  it('lets calls wait until it is back: none fails and none is paid before', async () => {
    const { gateway, backend } = await open({ overrides: { backend: { passthrough: { enabled: true } } } });
    backend.release();
    const proof = await testbed.proof('market_report', INPUT);
    await (await gateway.invoke('cities')).arrayBuffer();
    await released().answer;
    await backend.stop();
    const income = await testbed.income();
    const paid = bring(gateway, 'market_report', INPUT, { proof });
    const free = gateway.invoke('cities');
    const relayed = fetch(`${gateway.url}/document`);
    await eventually(async () => ((await series('acg_fence_held')) === 3 ? true : undefined), 'three held calls');
    assert.equal((await gateway.invoke('market_report', INPUT)).status, 402, 'an offer needs no backend');
    assert.equal(await testbed.income(), income);
    await back();
    assert.deepEqual([(await paid).status, (await free).status, (await relayed).status], [200, 200, 200]);
    assert.ok((await testbed.income()) > income);
    assert.equal(await series('acg_fence_calls_total{end="went_on"}'), 3);
    assert.equal(await series('acg_lifecycle{state="open"}'), 1);
  });

  it('makes a call wait no longer than two seconds, and takes no money for it', async () => {
    const { gateway, backend } = await open();
    backend.release();
    const proof = await testbed.proof('market_report', INPUT);
    await released().answer;
    await backend.stop();
    const began = performance.now();
    const refused = await bring(gateway, 'market_report', INPUT, { proof });
    assert.ok(performance.now() - began >= 1_950);
    failure(refused, 503, 'GATEWAY_BUSY');
    assert.deepEqual([refused.headers.get('retry-after'), refused.payment], ['1', undefined]);
    assert.equal(await testbed.income(), 0n);
    assert.equal(await series('acg_fence_calls_total{end="refused"}'), 1);
    await back();
    await eventually(
      async () => ((await series('acg_lifecycle{state="open"}')) === 1 ? true : undefined),
      'its return',
    );
    assert.equal((await bring(gateway, 'market_report', INPUT, { proof })).status, 200);
  });

  it('is not taken for back while the old process still listens', async () => {
    const { backend } = await open();
    backend.release();
    await released().answer;
    await pause(500);
    assert.equal(await series('acg_lifecycle{state="fenced"}'), 1);
    await backend.stop();
    await pause(200);
    await back();
    await eventually(
      async () => ((await series('acg_lifecycle{state="open"}')) === 1 ? true : undefined),
      'its return',
    );
  });
});
