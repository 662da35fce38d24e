import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { event } from '../payments/ledger/samples.ts';
import { readStream } from '../support/event-stream.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { type Replicas, startReplicas } from './stream-replicas.ts';

const EVENTS = 100_000;
const WARM_UP = 5_000;
const READERS = 3;
/** The ring must not drop what the readers have not read: it holds 10,000. */
const MOST_AHEAD = 5_000;
const LOOK_EVERY = 20_000;
const LIMIT_BYTES = 8_000_000;
const METER = join(import.meta.dirname, '../support/memory-meter.ts');

let replicas: Replicas;
before(async () => {
  replicas = await startReplicas(1, { execArgv: ['--expose-gc', '--import', METER] });
});
after(() => replicas?.stop());

let measured = 0;
/** Memory that is left after a collection, bytes. */
async function memory(gateway: GatewayProcess): Promise<number> {
  measured += 1;
  process.kill(gateway.pid, 'SIGUSR2');
  return Number((await gateway.logged(({ meter }) => meter === measured))['bytes']);
}

describe('a client of the event stream that never reads', () => {
  it('costs the process less than 8 MB while 100,000 events pass, and the others see every one', async (t) => {
    const [gateway] = replicas.gateways;
    assert.ok(gateway);
    const { token, store } = replicas;
    const readers = await Promise.all(Array.from({ length: READERS }, () => readStream(gateway.baseUrl, { token })));
    const seen = () => Math.min(...readers.map(({ ids }) => ids().length));
    let written = 0;
    const write = async (upTo: number): Promise<void> => {
      for (; written < upTo; written += 100) {
        await store.feed.append(Array.from({ length: 100 }, (_, i) => event('resource.requested', `n-${written + i}`)));
        for (const reader of readers)
          await reader.until(({ ids }) => ids().length > written - MOST_AHEAD, 'what was written');
      }
      for (const reader of readers) await reader.until(({ ids }) => ids().length >= written, 'all that was written');
    };
    await write(WARM_UP);
    const before = await memory(gateway);

    const { port } = new URL(gateway.baseUrl);
    const idle = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    t.after(() => idle.destroy());
    idle.write(`GET /api/events/stream HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    let most = Number.NEGATIVE_INFINITY;
    for (let passed = LOOK_EVERY; passed <= EVENTS; passed += LOOK_EVERY) {
      await write(WARM_UP + passed);
      most = Math.max(most, (await memory(gateway)) - before);
    }
    t.diagnostic(`memory grew by ${most} bytes at most`);
    assert.ok(most < LIMIT_BYTES, `${most} bytes`);
    const bytes = readers[0]?.text().length ?? 0;
    // The reader gets what the sockets held, and then the end of its connection.
    idle.resume();
    await once(idle, 'close');
    t.diagnostic(`${bytes} bytes a reader, ${idle.bytesRead} to the idle one`);
    assert.ok(idle.bytesRead < bytes - 10_000_000, 'the rest would have exceeded the limit');
    assert.equal(seen(), WARM_UP + EVENTS);
    for (const reader of readers) {
      assert.equal(new Set(reader.ids()).size, WARM_UP + EVENTS);
      assert.ok(!reader.text().includes(': gap'));
    }
  });
});
