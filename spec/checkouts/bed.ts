import assert from 'node:assert/strict';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import type { ClaimWatch, KeyedCall, KeyedEnd } from '../../src/checkouts/idempotency.ts';
import { createIdempotency } from '../../src/checkouts/machine.ts';
import { createSessions } from '../../src/checkouts/sessions.ts';
import type { IdempotencySettings } from '../../src/checkouts/settings.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import type { Time } from '../../src/time/time.ts';
import { rest } from '../payments/settlement/virtual-time.ts';
import { type ScriptedMerchant, scriptedMerchant } from './merchant.ts';

/** Of the operation, milliseconds. */
export const TIMEOUT_MS = 25_000;
const HOUR_MS = 3_600_000;
/** Where the clock begins, Unix milliseconds. */
const BEGIN_MS = 1_800_000_000_000;

export const SETTINGS: IdempotencySettings = {
  retentionMs: 25 * HOUR_MS,
  sessionKeepMs: 30 * 24 * HOUR_MS,
  secret: Buffer.from('a secret of a test, long enough for it'),
  keys: [{ id: 'k1', key: Buffer.alloc(32, 1) }],
  merchant: 'derived-key',
  sessionLock: true,
};

export const COMPLETE: KeyedCall = {
  clientId: 'agent',
  operation: 'completeCheckoutSession',
  sessionId: 'cs_1',
  key: 'key-1',
  body: { payment_data: { token: 'tok' } },
};

/** One gateway more on the bed's store. */
export interface Gateway {
  run(call?: KeyedCall): Promise<KeyedEnd<string>>;
  access(clientId: string, sessionId: string): Promise<string>;
  /** Begins a call that comes to no end, and resolves when it stands still. */
  begin(call?: KeyedCall): Promise<void>;
  readonly told: readonly string[];
}

/** A store, a merchant and their time, which passes only when somebody says so. */
export interface Bed {
  readonly claims: CheckoutClaims;
  readonly merchant: ScriptedMerchant;
  now(): number;
  pass(ms: number): void;
  /** `settings`: what is other than in SETTINGS. `claims`: how this gateway reaches the store. */
  gateway(options?: {
    readonly settings?: Partial<IdempotencySettings>;
    readonly claims?: CheckoutClaims;
    readonly servesUnknown?: boolean;
  }): Gateway;
  close(): Promise<void>;
}

/** The embedded store, in memory. */
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

/** A bed on any store. `time`: what the gateways live by. */
export function bedOn({
  claims: shared,
  time,
  pass,
  close,
}: Pick<Bed, 'claims' | 'pass' | 'close'> & { readonly time: Time }): Bed {
  const merchant = scriptedMerchant(pass);
  return {
    claims: shared,
    merchant,
    now: time.now,
    pass,
    close,
    gateway({ settings: changes = {}, claims = shared, servesUnknown = false } = {}) {
      const { watch, told } = keptWatch();
      const settings = { ...SETTINGS, ...changes };
      const deploymentId = 'shop';
      const sessions = createSessions({ claims, settings, deploymentId, servesUnknown, time });
      const idempotency = createIdempotency({
        claims,
        sessions,
        settings,
        deploymentId,
        longestTimeoutMs: TIMEOUT_MS,
        watch,
        time,
      });
      const run = (call = COMPLETE): Promise<KeyedEnd<string>> =>
        idempotency.run(call, TIMEOUT_MS, merchant.work(call));
      return {
        told,
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

function keptWatch(): { readonly watch: ClaimWatch; readonly told: readonly string[] } {
  const told: string[] = [];
  return {
    told,
    watch: {
      claimed: (outcome) => void told.push(outcome),
      leaseExpired: () => void told.push('lease expired'),
      unknown: (why) => void told.push(`unknown: ${why}`),
      fenced: () => void told.push('fenced'),
      unstored: () => void told.push('unstored'),
      unopened: () => void told.push('unopened'),
      foreign: () => void told.push('foreign'),
    },
  };
}

/** An answer as text: status, where it came from, and the bytes. */
export function said(end: KeyedEnd<string>): string {
  if (end.kind === 'answered')
    return `${end.answer.status} ${end.from} ${Buffer.from(end.answer.body).toString('utf8')}`;
  if (end.kind === 'failed') return end.failure;
  return 'retryAfterS' in end ? `${end.kind} ${end.retryAfterS}` : end.kind;
}

/** What a caller got, in bytes. */
export function bytesOf(end: KeyedEnd<string>): Uint8Array {
  return end.kind === 'answered' ? Uint8Array.from(end.answer.body) : assert.fail(`no answer: ${said(end)}`);
}
