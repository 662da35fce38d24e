// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { readStream } from '../../../spec/support/event-stream.ts';
import { attack, proven, times } from '../catalogue.ts';
import { formOf, openTarget, type Target } from '../target.ts';
import { answerTo, type Conversation, converse, HOST, head } from '../wire/conversation.ts';

/** Half of the default of `limits.maxStreams`: what one client gets. */
const MAX_STREAMS = 16;
const PAUSED = 40;
/** Calls during which no reader reads; each causes three events or more. */
const CALLS = times(600, 30_000);
/** Beyond the resident memory of the calls themselves: forty readers with a bound of 1 MiB each. */
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;

describe('hostile readers of the event stream', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  const request = (...lines: readonly string[]): string =>
    head('GET /api/events/stream HTTP/1.1', HOST, `Authorization: Bearer ${target.adminToken}`, ...lines);
  /** The status of an endless answer. */
  const statusOf = async (reader: Conversation): Promise<number> =>
    Number((await reader.untilText('\r\n\r\n')).split(' ')[1]);
  const call = (): Promise<Response> =>
    fetch(`${target.url}/api/resources/free_echo/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });

  const callMany = async (): Promise<void> => {
    const lines = Array.from({ length: 16 }, async () => {
      for (let made = 0; made < CALLS / 16; made += 1) await (await call()).arrayBuffer();
    });
    await Promise.all(lines);
  };

  attack(
    'O6',
    `of ${PAUSED} readers that never read, ${MAX_STREAMS} get a slot, and memory stays bounded`,
    async () => {
      // The calls themselves have allocated their memory before this.
      await callMany();
      const before = target.residentBytes();
      const readers: Conversation[] = [];
      const statuses: number[] = [];
      try {
        for (let opened = 0; opened < PAUSED; opened += 1) {
          const reader = await converse(target.url);
          readers.push(reader);
          reader.send(request());
          statuses.push(await statusOf(reader));
          reader.deafen();
        }
        assert.deepEqual(statuses, [...Array(MAX_STREAMS).fill(200), ...Array(PAUSED - MAX_STREAMS).fill(503)]);
        const refused = await answerTo(target.url, request());
        assert.deepEqual([refused.status, formOf(refused)], [503, 'envelope']);
        assert.equal(refused.headers.get('retry-after')?.[0], '5');
        await callMany();
        const growth = target.residentBytes() - before;
        assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes more are resident`);
      } finally {
        for (const reader of readers) reader.close();
      }
      await target.stillSells();
    },
  );

  attack('O6', 'two hundred readers that connect and leave free every slot', async () => {
    const storm = Array.from({ length: 200 }, async () => {
      const conversation = await converse(target.url);
      conversation.send(request());
      await conversation.until(1, 50);
      conversation.close();
    });
    await Promise.all(storm);
    const free: Awaited<ReturnType<typeof readStream>>[] = [];
    try {
      // A slot is free when the gateway notices the closed connection, which may be a moment later.
      for (let tries = 0; free.length < MAX_STREAMS && tries < 500; tries += 1) {
        const stream = await readStream(target.url, { token: target.adminToken });
        if (stream.status === 200) free.push(stream);
        else await stream.ended;
      }
      assert.equal(free.length, MAX_STREAMS);
    } finally {
      for (const stream of free) stream.leave();
    }
  });

  proven('O6', 'spec/operator/api/stream-route.spec.ts', 'Last-Event-ID ${name} is refused');
  proven(
    'O6',
    'spec/e2e/stream-memory.spec.ts',
    'costs the process less than 8 MB while 100,000 events pass, and the others see every one',
  );
  proven(
    'O6',
    'spec/operator/api/stream-pace.spec.ts',
    'of live events is cut with more than 1 MiB unsent and counted; the others get every event',
  );
});
