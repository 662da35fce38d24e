import assert from 'node:assert/strict';
import { afterEach, beforeEach, it } from 'node:test';
import type {
  Attempt,
  AttemptEnd,
  ClaimWatch,
  FinalAnswer,
  KeyedCall,
  KeyedEnd,
  ReadBack,
  Work,
} from '../../src/checkouts/attempts.ts';
import type { CheckoutClaims, Unknown } from '../../src/checkouts/claim-table.ts';
import { createIdempotency } from '../../src/checkouts/machine.ts';
import { createSessions } from '../../src/checkouts/sessions.ts';
import { type IdempotencySettings, leaseFor } from '../../src/checkouts/settings.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import type { Time } from '../../src/time/time.ts';
import { rest } from '../payments/settlement/virtual-time.ts';

/**
 * What the backend does with one POST. `refusal`: the session does not allow it. `declined`: the
 * request itself is wrong. `lost`: its end never arrives, as if the gateway had died.
 */
interface Turn {
  readonly acts: boolean;
  readonly ends: 'answer' | 'refusal' | 'declined' | 'not_executed' | 'lost' | { readonly unknown: Unknown };
  /** How long it takes, milliseconds. */
  readonly tookMs?: number;
  /** The session that a create makes; a new one unless given. */
  readonly opens?: string;
}

/**
 * What a reading of the session shows instead of the truth, and how long it takes, milliseconds.
 */
interface Reading {
  readonly shows?: 'unreadable' | 'in_progress';
  readonly tookMs?: number;
}

/** A POST as it arrived. */
export interface Post extends Attempt {
  readonly operation: KeyedCall['operation'];
}

/** A backend that ignores keys: two POSTs make two orders. A read session shows the truth. */
interface ScriptedBackend {
  readonly posts: readonly Post[];
  readonly reads: () => number;
  readonly orders: (sessionId: string) => number;
  /** What the next POSTs come to; afterwards all of them are done and answered. */
  next(...turns: readonly Turn[]): void;
  nextReads(...readings: readonly Reading[]): void;
  work(call: KeyedCall): Work;
}

/** `pass`: lets time go by, milliseconds. */
function scriptedBackend(pass: (ms: number) => void): ScriptedBackend {
  const posts: Post[] = [];
  const turns: Turn[] = [];
  const readings: Reading[] = [];
  const orders = new Map<string, number>();
  const canceled = new Set<string>();
  let reads = 0;

  const act = ({ operation, sessionId = 'new' }: KeyedCall): void => {
    if (operation === 'completeCheckoutSession') orders.set(sessionId, (orders.get(sessionId) ?? 0) + 1);
    if (operation === 'cancelCheckoutSession') canceled.add(sessionId);
  };
  const attempt = async (call: KeyedCall, { backendKey, number }: Attempt): Promise<AttemptEnd> => {
    posts.push({ operation: call.operation, backendKey, number });
    const { acts, ends, tookMs = 0, opens }: Turn = turns.shift() ?? { acts: true, ends: 'answer' };
    pass(tookMs);
    if (acts) act(call);
    if (ends === 'lost') return new Promise(() => undefined);
    if (ends === 'not_executed') return { kind: 'not_executed', failure: new Error('unreachable') };
    if (ends === 'refusal') return { kind: 'answer', answer: answerOf(409, { refused: posts.length }) };
    if (ends === 'declined') return { kind: 'answer', answer: answerOf(422, { declined: posts.length }) };
    if (ends !== 'answer') return { kind: 'unknown', why: ends.unknown, failure: new Error(`failed: ${ends.unknown}`) };
    const answer = answerOf(200, { by: call.operation, post: posts.length });
    if (call.operation !== 'createCheckoutSession') return { kind: 'answer', answer };
    return { kind: 'answer', answer, opened: opens ?? `new_${posts.length}` };
  };
  const read = async ({ operation, sessionId = '' }: KeyedCall): Promise<ReadBack> => {
    reads += 1;
    const { shows, tookMs = 0 } = readings.shift() ?? {};
    pass(tookMs);
    if (shows !== undefined) return { kind: shows };
    const happened = operation === 'cancelCheckoutSession' ? canceled.has(sessionId) : orders.has(sessionId);
    return happened ? { kind: 'happened', answer: answerOf(200, { read: reads }) } : { kind: 'not_happened' };
  };
  return {
    posts,
    reads: () => reads,
    orders: (sessionId) => orders.get(sessionId) ?? 0,
    next: (...more) => void turns.push(...more),
    nextReads: (...more) => void readings.push(...more),
    work: (call) => ({
      attempt: (one) => attempt(call, one),
      readBack: /complete|cancel/.test(call.operation) ? () => read(call) : undefined,
    }),
  };
}

function answerOf(status: number, document: object): FinalAnswer {
  return { status, body: Buffer.from(JSON.stringify(document)) };
}

/** Of the operation, milliseconds. */
export const TIMEOUT_MS = 25_000;
export const LEASE_MS = leaseFor(TIMEOUT_MS);
export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Where the clock begins, Unix milliseconds. */
const BEGIN_MS = 1_800_000_000_000;

export const SETTINGS: IdempotencySettings = {
  retentionMs: 25 * HOUR_MS,
  sessionKeepMs: 30 * DAY_MS,
  secret: Buffer.from('a secret of a test, long enough for it'),
  keys: [{ id: 'k1', key: Buffer.alloc(32, 1) }],
  merchant: 'derived-key',
  sessionLock: true,
};
export const OTHER_SECRET = { secret: Buffer.from('another secret of a test, as long as it') };

export const COMPLETE: KeyedCall = {
  clientId: 'agent',
  operation: 'completeCheckoutSession',
  sessionId: 'cs_1',
  key: 'key-1',
  body: { payment_data: { token: 'tok' } },
};
export const CANCEL: KeyedCall = { ...COMPLETE, operation: 'cancelCheckoutSession', key: 'key-cancel' };
export const OTHER_KEY: KeyedCall = { ...COMPLETE, key: 'key-2' };

/** A POST that acts, or does not, and whose end the gateway does not learn. */
export function unknown(acts: boolean, why: Unknown = 'timeout', tookMs = 0): Turn {
  return { acts, ends: { unknown: why }, tookMs };
}
export const DECLINED: Turn = { acts: false, ends: 'declined' };
export const REFUSED: Turn = { acts: false, ends: 'refusal' };
export const NOT_EXECUTED: Turn = { acts: false, ends: 'not_executed' };
/** The gateway dies while the backend works. */
export const LOST: Turn = { acts: true, ends: 'lost' };

/** A command of a store that is away. */
export const away = (): Promise<never> => Promise.reject(new StoreError(new Error('connection lost')));

/** One gateway on the bed's store. */
export interface Gateway {
  run(call?: KeyedCall): Promise<KeyedEnd>;
  access(clientId: string, sessionId: string): Promise<string>;
  /** Begins a call that comes to no end, and resolves when it stands still. */
  begin(call?: KeyedCall): Promise<void>;
  /** What the watch of claims was called with. */
  readonly reports: readonly string[];
}

interface GatewayOptions {
  /** What differs from SETTINGS. */
  readonly settings?: Partial<IdempotencySettings>;
  /** Commands of the store that this gateway reaches otherwise. */
  readonly claims?: Partial<CheckoutClaims>;
  readonly servesUnknown?: boolean;
}

/** A store, a backend and their time, which only tests advance. */
interface Bed {
  readonly claims: CheckoutClaims;
  readonly backend: ScriptedBackend;
  now(): number;
  pass(ms: number): void;
  gateway(options?: GatewayOptions): Gateway;
  close(): Promise<void>;
}

/** A bed on the embedded store, in memory. */
export function openBed(): Bed {
  let clock = BEGIN_MS;
  const store = openSqliteStore({
    path: ':memory:',
    limits: { eventsMaxLength: 10, receiptsMaxLength: 10 },
    now: () => clock,
  });
  const pass = (ms: number): void => {
    clock += ms;
  };
  const time = { now: () => clock, sleep: async (ms: number) => pass(ms) };
  return bedOn({ claims: store.checkouts, time, pass, close: () => store.close() });
}

/** For each test of the suite a bed of its own; to be called inside `describe`. */
export function freshBed(): Bed {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());
  return {
    get claims() {
      return bed.claims;
    },
    get backend() {
      return bed.backend;
    },
    now: () => bed.now(),
    pass: (ms) => bed.pass(ms),
    gateway: (options) => bed.gateway(options),
    close: () => bed.close(),
  };
}

/** A bed on any store. `time`: the gateways' own. */
function bedOn({
  claims: shared,
  time,
  pass,
  close,
}: Pick<Bed, 'claims' | 'pass' | 'close'> & { readonly time: Time }): Bed {
  const backend = scriptedBackend(pass);
  return {
    claims: shared,
    backend,
    now: time.now,
    pass,
    close,
    gateway({ settings: changes = {}, claims: others = {}, servesUnknown = false } = {}) {
      const { watch, reports } = recordingWatch();
      const parts = {
        claims: { ...shared, ...others },
        settings: { ...SETTINGS, ...changes },
        deploymentId: 'merchant',
        time,
      };
      const sessions = createSessions({ ...parts, servesUnknown });
      const idempotency = createIdempotency({ ...parts, sessions, longestTimeoutMs: TIMEOUT_MS, watch });
      const run = (call = COMPLETE): Promise<KeyedEnd> => idempotency.run(call, TIMEOUT_MS, backend.work(call));
      return {
        reports,
        run,
        async access(clientId, sessionId) {
          const found = await sessions.access(clientId, sessionId);
          return found.kind === 'absent' ? `absent: ${found.whose}` : found.kind;
        },
        async begin(call) {
          void run(call);
          await rest();
        },
      };
    },
  };
}

function recordingWatch(): { readonly watch: ClaimWatch; readonly reports: readonly string[] } {
  const reports: string[] = [];
  return {
    reports,
    watch: {
      claimed: (outcome) => void reports.push(outcome),
      leaseExpired: () => void reports.push('lease expired'),
      unknown: (why) => void reports.push(`unknown: ${why}`),
      fenced: () => void reports.push('fenced'),
      unstored: () => void reports.push('unstored'),
      unopened: () => void reports.push('unopened'),
      foreign: () => void reports.push('foreign'),
    },
  };
}

/** One call of a story: how it ends, which call it is, and what comes before it. */
export type Step = readonly [
  end: string,
  call?: KeyedCall,
  before?: { readonly afterMs?: number; readonly reads?: readonly (Reading | Reading['shows'])[] },
];

interface StoryOptions extends GatewayOptions {
  /** What the backend does with the POSTs. */
  readonly turns?: readonly Turn[];
  /** Orders of the session in the end, 1 unless given. */
  readonly orders?: number;
  /** POSTs in the end. */
  readonly posts?: number;
  /** Readings of the session in the end. */
  readonly reads?: number;
  readonly reports?: readonly string[];
}

/**
 * A test of calls one after the other on one gateway. An end is the text of `textOf`, or its
 * beginning up to a space.
 */
export function story(bed: Bed, title: string, options: StoryOptions, steps: readonly Step[]): void {
  const { turns = [], orders = 1, posts, reads, reports, ...gatewayOptions } = options;
  it(title, async () => {
    bed.backend.next(...turns);
    const gateway = bed.gateway(gatewayOptions);
    for (const [index, [expected, call, { afterMs = 0, reads: readings = [] } = {}]] of steps.entries()) {
      bed.pass(afterMs);
      bed.backend.nextReads(
        ...readings.map((one) => (typeof one === 'object' ? one : one === undefined ? {} : { shows: one })),
      );
      const end = textOf(await gateway.run(call));
      assert.ok(end === expected || end.startsWith(`${expected} `), `call ${index + 1}: ${end}, not ${expected}`);
    }
    assert.equal(bed.backend.orders('cs_1'), orders, 'orders');
    if (posts !== undefined) assert.equal(bed.backend.posts.length, posts, 'posts');
    if (reads !== undefined) assert.equal(bed.backend.reads(), reads, 'reads');
    if (reports !== undefined) assert.deepEqual(gateway.reports, reports);
  });
}

/** An end as text: status, where the answer came from, and the bytes; or kind and wait. */
export function textOf(end: KeyedEnd): string {
  if (end.kind === 'answered')
    return `${end.answer.status} ${end.from} ${Buffer.from(end.answer.body).toString('utf8')}`;
  if (end.kind === 'failed') return end.failure.message;
  return 'retryAfterS' in end ? `${end.kind} ${end.retryAfterS}` : end.kind;
}

/** The bytes of an answer. */
export function bytesOf(end: KeyedEnd): Uint8Array {
  return end.kind === 'answered' ? Uint8Array.from(end.answer.body) : assert.fail(`no answer: ${textOf(end)}`);
}
