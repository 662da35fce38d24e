import { randomUUID } from 'node:crypto';
import type { RegisterEpoch } from '../../../src/mandates/register/register.ts';
import { openStore } from '../../../src/store/open.ts';
import type { StorageConfig } from '../../../src/store/port/settings.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { type Expectation, readVectors, type VectorCase } from './file.ts';
import { createPresenter, type Presenter, type Result } from './present.ts';

interface VectorArgs {
  readonly file: string;
  /** Undefined: an embedded store in memory. */
  readonly redis: string | undefined;
}

/** A case leaves a handful of entries, and nobody reads events here. */
const MAX_ENTRIES = 100;
/** Their mandates are older than any register that is opened here. */
const FOREVER: RegisterEpoch = { born: 0, openFrom: 0 };

/**
 * `acg vectors ap2 FILE`: presents every case of a file (ap2 15) to the verifier and the register
 * that serve, each from an empty register. One line for every case that comes out otherwise, and
 * one with the counts. Returns how many came out otherwise.
 * @throws Error for a file that is not understood, or a Redis that is not there
 */
export async function vectors({ file, redis }: VectorArgs): Promise<number> {
  const { shop, cases } = readVectors(file);
  const present = createPresenter(shop);
  const byName = new Map(cases.map((vector) => [vector.name, vector]));
  let mismatches = 0;
  for (const vector of cases) {
    const mismatch = await withStore(redis, (store) => mismatchOf(vector, byName, store, present));
    if (mismatch === undefined) continue;
    mismatches += 1;
    process.stdout.write(`${vector.name}: ${mismatch}\n`);
  }
  process.stdout.write(`${cases.length} cases, ${mismatches} mismatches\n`);
  return mismatches;
}

/** An empty register: of a merchant that never was, where others may use the same Redis. */
async function withStore<T>(redis: string | undefined, use: (store: Store) => Promise<T>): Promise<T> {
  const engine: StorageConfig['engine'] =
    redis === undefined ? { kind: 'sqlite', path: ':memory:' } : { kind: 'redis', url: redis };
  const merchantId = `vectors-${randomUUID()}`;
  const limits = { eventsMaxLength: MAX_ENTRIES, receiptsMaxLength: MAX_ENTRIES };
  const store = await openStore({ engine, merchantId, ...limits, replicas: 1, epoch: FOREVER });
  try {
    const health = await store.check();
    if (health.status === 'unreachable' || health.status === 'unwritable')
      throw new Error(
        `the store (${store.name}) cannot be used: ${health.cause}${redis === undefined ? '' : '; is it at the URL of --redis?'}`,
      );
    return await use(store);
  } finally {
    await store.close();
  }
}

async function mismatchOf(
  vector: VectorCase,
  byName: ReadonlyMap<string, VectorCase>,
  { mandates }: Store,
  present: Presenter,
): Promise<string | undefined> {
  for (const { name, outcome } of vector.before) {
    const earlier = byName.get(name);
    const { result } = earlier === undefined ? { result: 'missing' } : await present(earlier, mandates, outcome);
    if (result !== 'accepted') return `${name}, which comes before, should be accepted and was ${result}`;
  }
  return compared(vector.expected, await present(vector, mandates, 'committed'));
}

/**
 * What of a result is not as expected. Another reason that the file allows has its own code and
 * class.
 */
function compared({ result, also, facts }: Expectation, actual: Result): string | undefined {
  if (actual.result !== result) {
    if (also.includes(actual.result)) return undefined;
    const allowed = [result, ...also].join(' or ');
    return `expected ${allowed}, was ${actual.result}`;
  }
  for (const [name, expected] of Object.entries(facts)) {
    const found = actual.facts[name];
    if (found !== expected) return `expected ${name} ${JSON.stringify(expected)}, was ${JSON.stringify(found)}`;
  }
  return undefined;
}
