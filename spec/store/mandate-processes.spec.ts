import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { race } from './racers.ts';
import { temporaryDirectory } from './temporary.ts';

const MAIN = fileURLToPath(import.meta.resolve('./mandates-main.ts'));
/** Claims of each of the two processes. */
const EACH = 100;
const directory = temporaryDirectory();

let redis: TestRedis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

describe('two processes that claim at once', () => {
  for (const engine of ['redis', 'sqlite'] as const)
    for (const how of ['paid', 'free'] as const) {
      it(`${engine}, ${how}: of 200 claims on a budget for 100 exactly 100 are accepted`, async () => {
        assert.equal(sum(await claimed(engine, how, 'budget')), 100);
      });

      it(`${engine}, ${how}: one mandate, 200 times, is accepted once`, async () => {
        assert.equal(sum(await claimed(engine, how, 'mandate')), 1);
      });
    }
});

/** How many claims each process had accepted. */
async function claimed(engine: 'redis' | 'sqlite', how: string, what: string): Promise<readonly number[]> {
  const name = randomUUID();
  const at = engine === 'redis' ? redis.url : join(directory, `${name}.db`);
  const order = [engine, at, how, what, name, `${EACH}`];
  return race(MAIN, order);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
