/** `acg vectors ap2`: presents the cases of a file (ap2 15) to the verifier and the register. */

import { randomUUID } from 'node:crypto';
import { UnavailableError } from '../../src/cli/program.ts';
import { ERRORS } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { createIssuedCheckouts } from '../../src/mandates/ap2/checkout.ts';
import { createTrustedIssuers } from '../../src/mandates/ap2/issuers.ts';
import { REASONS, type Reason } from '../../src/mandates/ap2/reasons.ts';
import { createMandateVerifier, type VerifyMandate } from '../../src/mandates/ap2/verify.ts';
import type { MandateRegister, RegisterEpoch } from '../../src/mandates/register.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openStore } from '../../src/store/open.ts';
import type { StorageConfig } from '../../src/store/port/settings.ts';
import {
  type Expectation,
  type Outcome,
  type Policy,
  readVectors,
  type VectorCase,
  type VectorMerchant,
} from './ap2-file.ts';

interface VectorArgs {
  readonly file: string;
  /** Undefined: an embedded store in memory. */
  readonly redis: string | undefined;
}

/** A case leaves a handful of entries, and its events are not read. */
const MAX_ENTRIES = 100;
/** The mandates of a file are older than any register that is opened here. */
const FOREVER: RegisterEpoch = { born: 0, openFrom: 0 };

/**
 * Each case begins with an empty register. Prints one line for every other result, and one with the
 * counts. Returns how many there were.
 * @throws Error for a file that is not understood, or a Redis that is not there
 */
export async function vectors({ file, redis }: VectorArgs): Promise<number> {
  const { merchant, cases } = readVectors(file);
  const present = createCaseRunner(merchant);
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

/** An empty register: of a new merchant, because a Redis may be shared. */
async function withStore<T>(redis: string | undefined, use: (store: Store) => Promise<T>): Promise<T> {
  const engine: StorageConfig['engine'] =
    redis === undefined ? { kind: 'sqlite', path: ':memory:' } : { kind: 'redis', url: redis };
  const merchantId = `vectors-${randomUUID()}`;
  const limits = { eventsMaxLength: MAX_ENTRIES, receiptsMaxLength: MAX_ENTRIES };
  const store = await openStore({ engine, merchantId, ...limits, replicas: 1, epoch: FOREVER });
  try {
    const health = await store.check();
    if (health.status === 'unreachable' || health.status === 'unwritable')
      throw new UnavailableError(
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
  present: CaseRunner,
): Promise<string | undefined> {
  for (const { name, outcome } of vector.before) {
    const earlier = byName.get(name);
    const { result } = earlier === undefined ? { result: 'missing' } : await present(earlier, mandates, outcome);
    if (result !== 'accepted') return `${name}, which comes before, should be accepted and was ${result}`;
  }
  return compared(vector.expected, await present(vector, mandates, 'committed'));
}

/** What of a result is not as expected. An allowed other reason has its own code and class. */
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

/** The result of a presentation, in the words of a file of vectors. */
interface Result {
  /** `accepted`, or a reason. */
  readonly result: string;
  readonly facts: JsonObject;
}

/** Presents a case to the verifier and, where that accepts it, to the register. */
type CaseRunner = (vector: VectorCase, register: MandateRegister, outcome: Outcome) => Promise<Result>;

/** The verifier is the one that serves; only its clock is that of the file. */
function createCaseRunner(merchant: VectorMerchant): CaseRunner {
  const verifiers = new Map<string, VerifyMandate>();
  const verifierOf = (policy: Policy): VerifyMandate => {
    const key = JSON.stringify(policy);
    const verifier = verifiers.get(key) ?? verifierFor(merchant, policy);
    verifiers.set(key, verifier);
    return verifier;
  };
  return async function present({ header, purchase, policy, now }, register, outcome) {
    const carried = header === undefined ? ({ kind: 'none' } as const) : ({ kind: 'text', value: header } as const);
    const verdict = await verifierOf(policy)(carried, purchase, now);
    if (verdict.kind === 'refused') return refused(verdict.reason);
    const name = randomUUID();
    const used = await register.reserve(name, verdict.claim);
    if (used.kind === 'refused') return refused(used.reason);
    if (outcome !== 'uncertain') await register.finish(name, outcome === 'committed' ? 'commit' : 'release');
    const { mode, reference, mandateId } = verdict;
    return { result: 'accepted', facts: { mode, reference, mandateId } };
  };
}

function verifierFor({ profile, issuers, checkoutKeys }: VectorMerchant, policy: Policy): VerifyMandate {
  const fetcher = { fetch: () => Promise.reject(new Error('all keys are in the file')) };
  return createMandateVerifier({
    profile: { ...profile, policy },
    trust: createTrustedIssuers(issuers, { fetcher }),
    checkoutKeys,
    minted: createIssuedCheckouts(),
  });
}

function refused(reason: Reason): Result {
  const { code, ap2Error } = REASONS[reason];
  return { result: reason, facts: { code, status: ERRORS[code].status, ap2Error: ap2Error ?? null } };
}
