import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import { readStream } from '../support/event-stream.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { type Replicas, startReplicas } from './stream-replicas.ts';

const CALLS = 500;
const EVENTS_A_CALL = 3;
const CALLERS = 12;
const CUTS = 4;

let replicas: Replicas;
before(async () => {
  replicas = await startReplicas(2);
});
after(() => replicas?.stop());

const invoke = async (gateway: number, resource: string): Promise<void> => {
  const answer = await fetch(`${replicas.gateways[gateway]?.baseUrl}/api/resources/${resource}/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  await answer.arrayBuffer();
  assert.equal(answer.status, 200);
};

/** Every event of the ring, oldest first. */
async function ring(): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let position = 'evt_0-0'; ; position = ids.at(-1) ?? position) {
    const { entries } = await replicas.store.feed.after(position, 1_000);
    if (entries.length === 0) return ids;
    ids.push(...entries.map(({ id }) => id));
  }
}

/**
 * Reads over a proxy that is cut after each number of events in `cuts`, and resumes with the last
 * whole event. Resolves once `wanted` events came; a silent connection fails by itself.
 */
async function subscriber(line: TcpProxy, cuts: readonly number[], wanted: number) {
  const got: string[] = [];
  let gaps = 0;
  let resumed = 0;
  const left = [...cuts];
  // Events that came in one piece may be all: what is left of the cuts is made all the same.
  while (got.length < wanted || left.length > 0) {
    const lastEventId = got.at(-1) ?? 'evt_0-0';
    const client = await readStream(`http://127.0.0.1:${line.port}`, { token: replicas.token, lastEventId });
    assert.equal(client.status, 200);
    const enough = () => got.length + client.ids().length >= (left[0] ?? wanted);
    await client.until(enough, `event ${left[0] ?? wanted}`);
    const last = left.shift() === undefined;
    if (last) client.leave();
    else {
      line.cut();
      line.mend();
      resumed += 1;
    }
    await client.ended;
    got.push(...client.ids());
    gaps += client.text().split(': gap').length - 1;
  }
  return { got, gaps, resumed };
}

describe('the event stream of two processes over one Redis', () => {
  it('1,500 events, each reader cut four times: none is missed, none comes twice', async (t) => {
    const wanted = CALLS * EVENTS_A_CALL;
    const targets = [0, 0, 1, 1];
    const lines = await Promise.all(
      targets.map((i) => startTcpProxy({ host: '127.0.0.1', port: Number(new URL(gatewayUrl(i)).port) })),
    );
    t.after(() => Promise.all(lines.map((line) => line.stop())));
    const cuts = lines.map(() =>
      Array.from({ length: CUTS }, () => 1 + Math.floor(Math.random() * (wanted - 1))).sort((a, b) => a - b),
    );
    t.diagnostic(`cut after ${cuts.map((one) => one.join(', ')).join('; ')}`);
    const reading = lines.map((line, i) => subscriber(line, cuts[i] ?? [], wanted));
    let calls = 0;
    const caller = async (gateway: number) => {
      while (calls < CALLS) {
        calls += 1;
        await invoke(gateway, 'cities');
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, (_, i) => caller(i % 2)));
    const readers = await Promise.all(reading);
    const written = await ring();
    assert.equal(written.length, wanted);
    for (const { got, gaps, resumed } of readers) {
      assert.deepEqual([gaps, resumed], [0, CUTS]);
      assert.equal(new Set(got).size, got.length, 'none twice');
      assert.deepEqual(got, written);
    }
  });

  it('SIGTERM with an open stream and a paid call: the call is delivered, the stream ended, exit 0', async () => {
    const { backend, chain, token } = replicas;
    const [gateway] = replicas.gateways;
    assert.ok(gateway);
    const client = await readStream(gateway.baseUrl, { token });
    const buyer = await createBuyer(chain);
    // Once it waits for the merchant it is paid: a drain begins no settlement.
    backend.hold();
    const arrived = backend.nextRequest('/held');
    const paid = buyer.fetch(`${gateway.baseUrl}/api/resources/held/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    await arrived;
    await client.until(({ text }) => text().includes('"type":"payment.verified"'), 'a payment');
    process.kill(gateway.pid, 'SIGTERM');
    await client.ended;
    assert.ok(client.text().endsWith(': draining\n\n'));
    backend.release();
    assert.equal((await paid).status, 200);
    assert.deepEqual(await gateway.ended, { code: 0, signal: null });
  });
});

function gatewayUrl(i: number): string {
  return replicas.gateways[i]?.baseUrl ?? assert.fail('no such gateway');
}
