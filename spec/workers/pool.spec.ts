import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { answerCommands, type CommandHandlers } from '../../src/workers/channel.ts';
import type { StartOrder } from '../../src/workers/commands.ts';
import {
  ANSWERS_WITHIN_MS,
  createPool,
  DEATHS_WITHIN_MS,
  LOOK_EVERY_MS,
  MOST_DEATHS,
  MOST_UNANSWERED,
  PAUSE_MS,
  type WorkerEnd,
  type WorkerProcess,
} from '../../src/workers/pool.ts';
import { channelPair } from './channel-pair.ts';

/** A worker without a process. */
interface Fake {
  readonly pid: number;
  end(end: WorkerEnd): void;
  readonly asked: string[];
  silent: boolean;
}

const PORT = 8_402;
const KILLED: WorkerEnd = { code: null, signal: 'SIGKILL' };

function bed({ fails }: { readonly fails?: (pid: number) => boolean } = {}) {
  const fakes: Fake[] = [];
  const notes: string[] = [];
  const clock = { now: 0 };
  const orders: StartOrder[] = [];
  const fork = (): WorkerProcess => {
    const [primary, worker] = channelPair();
    const pid = fakes.length + 1;
    const ended = Promise.withResolvers<WorkerEnd>();
    const fake: Fake = { pid, asked: [], silent: false, end: ended.resolve };
    const noted =
      <T>(name: string, answer: T) =>
      (): T | Promise<never> => {
        fake.asked.push(name);
        if (fails?.(pid) === true) throw new Error('no start');
        return fake.silent ? new Promise<never>(() => undefined) : answer;
      };
    answerCommands(worker, {
      start(order: StartOrder) {
        orders.push(order);
        if (fails?.(pid) === true) throw new Error('no start');
        return { port: PORT };
      },
      ping: noted('ping', null),
      metrics: noted('metrics', `of ${pid}`),
      drain: noted('drain', null),
      end() {
        fake.end({ code: 0, signal: null });
        return null;
      },
    } as Partial<CommandHandlers> as CommandHandlers);
    fakes.push(fake);
    return {
      ...primary,
      pid,
      onEnd: (listener) => void ended.promise.then(listener),
      // What it has sent before arrives first.
      kill: () => void turn().then(() => turn().then(() => fake.end(KILLED))),
    };
  };
  const order = (): StartOrder => ({
    config: { number: orders.length, document: {} as never, fromFile: new Set() },
    processes: 2,
    port: undefined,
    fence: undefined,
  });
  const pool = createPool({ count: 2, fork, order, note: ({ kind }) => void notes.push(kind), now: () => clock.now });
  const die = async (fake: Fake | undefined): Promise<void> => {
    fake?.end(KILLED);
    await settled();
    mock.timers.tick(MOST_DEATHS * PAUSE_MS);
    await settled();
  };
  return { pool, fakes, notes, orders, clock, die };
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 8; turns += 1) await turn();
}

describe('the workers of a gateway', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval', 'setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('start together, share a port, and are asked together', async () => {
    const { pool, fakes } = bed();
    assert.equal(await pool.start(), PORT);
    assert.deepEqual(
      [...(await pool.serving('metrics', null))],
      [
        [1, 'of 1'],
        [2, 'of 2'],
      ],
    );
    assert.deepEqual(pool.facts(), { serving: 2, ended: 0 });
    assert.equal(fakes.length, 2);
    await pool.end();
  });

  it('do not start when one of them cannot', async () => {
    const { pool } = bed({ fails: (pid) => pid === 2 });
    await assert.rejects(pool.start(), { message: 'no start' });
    await pool.end();
  });

  it('are replaced by one that begins with what is in use then', async () => {
    const { pool, fakes, notes, orders, die } = bed();
    await pool.start();
    await die(fakes[0]);
    assert.deepEqual([fakes.length, notes], [3, ['ended', 'replaced']]);
    assert.equal(orders[2]?.config.number, 2);
    assert.deepEqual([...(await pool.serving('metrics', null)).keys()], [2, 3]);
    assert.deepEqual(pool.facts(), { serving: 2, ended: 1 });
    await pool.end();
  });

  it('are replaced at once, and each further one of a minute later, so that a cause may pass', async () => {
    const { pool, fakes } = bed();
    await pool.start();
    const waits = [];
    for (let death = 0; death < MOST_DEATHS; death += 1) {
      const forked = fakes.length;
      fakes.at(-1)?.end(KILLED);
      await settled();
      let seconds = 0;
      for (; fakes.length === forked; seconds += 1) {
        mock.timers.tick(PAUSE_MS);
        await settled();
      }
      waits.push(seconds);
    }
    assert.deepEqual(waits, [0, 1, 2, 3, 4]);
    await pool.end();
  });

  it('are never more than configured, and none begins late while the pod drains', async () => {
    const { pool, fakes } = bed();
    await pool.start();
    const paused = async (): Promise<void> => {
      mock.timers.tick(MOST_DEATHS * PAUSE_MS);
      await settled();
    };
    for (const fake of fakes.slice()) fake.end(KILLED);
    await settled();
    assert.equal(fakes.length, 3, 'the second one waits');
    pool.hold();
    await paused();
    assert.equal(fakes.length, 3);
    fakes[2]?.end(KILLED);
    await settled();
    pool.refill();
    await paused();
    assert.deepEqual([fakes.length, pool.facts().serving], [5, 2]);
    fakes[4]?.end(KILLED);
    await settled();
    pool.hold();
    pool.refill();
    await paused();
    assert.deepEqual([fakes.length, pool.facts().serving], [6, 2]);
    await pool.end();
  });

  it(`are given up when more than ${MOST_DEATHS} end within a minute, and not when they end slower`, async () => {
    const { pool, fakes, clock, die } = bed();
    await pool.start();
    let failed = '';
    pool.failed.catch((error: Error) => {
      failed = error.message;
    });
    for (let death = 0; death < 2 * MOST_DEATHS; death += 1) {
      clock.now += DEATHS_WITHIN_MS / MOST_DEATHS;
      await die(fakes.at(-1));
    }
    assert.equal(failed, '');
    clock.now += DEATHS_WITHIN_MS;
    for (let death = 0; death < MOST_DEATHS; death += 1) await die(fakes.at(-1));
    assert.equal(failed, '');
    const forked = fakes.length;
    await die(fakes.at(-1));
    assert.match(failed, /^6 workers ended within 60 s/);
    assert.equal(fakes.length, forked, 'none is started any more');
    await pool.end();
  });

  it('are not replaced while the pod drains, and all there again when it opens again', async () => {
    const { pool, fakes, die } = bed();
    await pool.start();
    pool.hold();
    await pool.all('drain', { propagationMs: 0, finishMs: 0 });
    assert.deepEqual([fakes[0]?.asked, fakes[1]?.asked], [['drain'], ['drain']]);
    await die(fakes[1]);
    assert.equal(fakes.length, 2);
    pool.refill();
    await settled();
    assert.deepEqual([fakes.length, pool.facts().serving], [3, 2]);
    await pool.end();
  });

  it('that cannot start while they are asked are left out of the answer', async () => {
    const { pool, die, fakes } = bed({ fails: (pid) => pid === 3 });
    await pool.start();
    fakes[0]?.end(KILLED);
    while (fakes.length < 3) await turn();
    assert.equal((await pool.all('drain', { propagationMs: 0, finishMs: 0 })).length, 1);
    await die(fakes[1]);
    await pool.end();
  });

  it('that end while they are asked are left out of the answer', async () => {
    const { pool, fakes } = bed();
    await pool.start();
    const [first] = fakes;
    if (first !== undefined) first.silent = true;
    const answers = pool.serving('metrics', null);
    await settled();
    first?.end(KILLED);
    assert.deepEqual([...(await answers).values()], ['of 2']);
    await pool.end();
  });

  it('that do not answer in time are named without an answer', async () => {
    const { pool, fakes } = bed();
    await pool.start();
    const [first] = fakes;
    if (first !== undefined) first.silent = true;
    const answers = pool.serving('metrics', null);
    await settled();
    mock.timers.tick(ANSWERS_WITHIN_MS);
    assert.deepEqual(
      [...(await answers)],
      [
        [1, undefined],
        [2, 'of 2'],
      ],
    );
    await pool.end();
  });

  it('that answer nothing for half a minute are ended and replaced; a late answer is enough', async () => {
    const { pool, fakes, notes } = bed();
    await pool.start();
    const [first] = fakes;
    const look = async (): Promise<void> => {
      mock.timers.tick(LOOK_EVERY_MS);
      await settled();
    };
    for (const silent of [true, true, false, true]) {
      if (first !== undefined) first.silent = silent;
      await look();
    }
    assert.deepEqual(notes, []);
    for (let looks = 0; looks < MOST_UNANSWERED; looks += 1) await look();
    assert.deepEqual([notes, fakes.length], [['silent', 'ended', 'replaced'], 3]);
    await pool.end();
  });
});
