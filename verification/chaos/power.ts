/** A Redis whose power can be cut: unsynced writes are gone. */

import { readdirSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedis, type TestRedis } from '../../spec/support/redis.ts';

/** A power cut: what was written after `sampledAt` is gone. Unix milliseconds. */
export interface PowerCut {
  readonly sampledAt: number;
  readonly killedAt: number;
  readonly lostBytes: number;
}

/** A Redis that can lose its power. */
export interface Power {
  readonly redis: TestRedis;
  readonly cuts: readonly PowerCut[];
  /** kill -9: writes survive. */
  kill(): Promise<void>;
  /** kill -9; the append-only file keeps only what is at least a second old. @returns lost bytes */
  cut(): Promise<number>;
  restart(): Promise<void>;
  /** SIGSTOP until SIGCONT: the server keeps its connections and answers nothing. */
  pause(): void;
  wake(): void;
  stop(): Promise<void>;
}

/** How long a cut waits for writes that it can lose, milliseconds. */
const WAIT_FOR_WRITES_MS = 5_000;
/** Below this age a write may not be on the disk yet, with `appendfsync everysec`. */
const UNSYNCED_MS = 1_000;
const SAMPLE_EVERY_MS = 100;
const SAMPLES = 30;

interface Sample {
  readonly at: number;
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Starts Redis with an append-only file whose growth is watched. It is never rewritten, so that
 * sizes stay comparable.
 */
export async function openPower(): Promise<Power> {
  const redis = await startRedis({ args: ['--auto-aof-rewrite-percentage', '0'] });
  const directory = join(dirname(redis.socketPath), 'appendonlydir');
  const cuts: PowerCut[] = [];
  let samples: Sample[] = [];
  const sample = (): void => {
    // The time is read first: a write during the reading counts as later.
    const at = Date.now();
    samples = [...samples.slice(1 - SAMPLES), { at, sizes: sizesOf(directory) }];
  };
  /**
   * The newest state that a power cut would leave; the state right after a start was read from the
   * disk.
   */
  const synced = (): Sample => {
    const kept = samples.findLast(({ at }) => at <= Date.now() - UNSYNCED_MS) ?? samples[0];
    if (kept === undefined) throw new Error('nothing was ever sampled');
    return kept;
  };
  sample();
  const timer = setInterval(sample, SAMPLE_EVERY_MS);

  return {
    redis,
    cuts,
    kill: () => redis.kill(),
    async cut() {
      const deadline = Date.now() + WAIT_FOR_WRITES_MS;
      while (Date.now() < deadline && sum(sizesOf(directory)) <= sum(synced().sizes)) await delay(SAMPLE_EVERY_MS);
      const kept = synced();
      await redis.kill();
      const killedAt = Date.now();
      let lostBytes = 0;
      for (const [path, size] of sizesOf(directory)) {
        const least = Math.min(size, kept.sizes.get(path) ?? size);
        lostBytes += size - least;
        truncateSync(path, least);
      }
      cuts.push({ sampledAt: kept.at, killedAt, lostBytes });
      return lostBytes;
    },
    async restart() {
      await redis.restart();
      samples = [];
      sample();
    },
    pause: () => void process.kill(redis.pid, 'SIGSTOP'),
    wake: () => void process.kill(redis.pid, 'SIGCONT'),
    async stop() {
      clearInterval(timer);
      await redis.stop();
    },
  };
}

function sum(sizes: ReadonlyMap<string, number>): number {
  return [...sizes.values()].reduce((all, size) => all + size, 0);
}

function sizesOf(directory: string): ReadonlyMap<string, number> {
  const files = readdirSync(directory).filter((name) => name.endsWith('.aof'));
  return new Map(files.map((name) => [join(directory, name), statSync(join(directory, name)).size]));
}
