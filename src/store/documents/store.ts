/** The parts of a store, and those that are the same over each engine. */

import { randomUUID } from 'node:crypto';
import type { CheckoutClaims } from '../../checkouts/claim-table.ts';
import { documentClaims } from '../../checkouts/document-claims.ts';
import type { EventBatch, EventFeed } from '../../events/event.ts';
import {
  documentRegister,
  EPOCH_KEY,
  keepEpoch,
  type MandateRegister,
  type RegisterEpoch,
} from '../../mandates/register.ts';
import { documentLedger, type PaymentCensus } from '../../payments/ledger/document-ledger.ts';
import type { PaymentLedger } from '../../payments/ledger/ledger.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import type { SharedWork } from '../../payments/settlement/places.ts';
import { documentBook } from '../../receipts/document-book.ts';
import type { ReceiptBook } from '../../receipts/receipt.ts';
import { type Commits, createTransact, parsed, type Transact } from '../port/commit.ts';
import type { StorageConfig, StoreLimits } from '../port/settings.ts';
import { StoreError, type StoreHealth } from '../port/store-error.ts';

/** Everything that must survive the process: in Redis for several processes, in SQLite for one. */
export interface Store {
  readonly name: 'redis' | 'sqlite';
  readonly ledger: PaymentLedger;
  readonly feed: EventFeed;
  readonly receipts: ReceiptBook;
  /** Uses of mandates by calls that pay nothing; those of payments are written with the ledger. */
  readonly mandates: MandateRegister;
  /** Claims of keyed operations on checkout sessions. */
  readonly checkouts: CheckoutClaims;
  /** Values that all processes of the merchant share. */
  readonly secrets: SharedSecrets;
  /** The budget of unpaid work of all processes; absent where one process has the store. */
  readonly work?: SharedWork;
  /** Counts the payments that stand open. @throws StoreError */
  census(): Promise<PaymentCensus>;
  /** Writes and reads back: a PING does not notice a read-only replica or a full disk. */
  check(): Promise<StoreHealth>;
  /** How often a sealed value could not be opened, by its kind; absent where nothing is sealed. */
  readonly unreadable?: () => Readonly<Record<string, number>>;
  /** Takes over keys and logins of another configuration; absent where there are none. */
  renew?(config: Pick<StorageConfig, 'engine' | 'sealing'>): void;
  /** A short step of housekeeping: drops receipts over the bounds. True: there is more to do. */
  tidy(): Promise<boolean>;
  close(): Promise<void>;
}

/** How long the last batch of a queue is remembered, far longer than one is repeated. */
const BATCH_MEMORY_MS = 3_600_000;

/** The parts of a store that each engine has of its own. */
export interface Engine extends Pick<Store, 'name' | 'work' | 'close'> {
  readonly commits: Commits;
  readonly feed: Omit<Store['feed'], 'append'>;
  /** Gives unused space back. True: there is more. */
  giveBack?(): boolean;
}

/** `epoch`: the start of an empty register of mandates, by default now. */
interface HealthParts {
  readonly epoch: RegisterEpoch | undefined;
  readonly log: { warn(fields: object, message: string): void } | undefined;
  /** The status of a store that does not answer. */
  readonly unanswered: 'unreachable' | 'unwritable';
}

export function storeOver(engine: Engine, limits: StoreLimits, health: HealthParts): Store {
  const { name, commits, feed, work, close } = engine;
  const transact = createTransact(commits);
  const book = documentBook(commits, transact, limits);
  const ledger = documentLedger(commits, transact, book.writer);
  return {
    name,
    ledger,
    feed: {
      ...feed,
      async append(events, batch) {
        if (batch === undefined) return transact([], () => ({ answer: undefined, changes: { documents: [], events } }));
        const key = `batch:${batch.queue}`;
        await transact([key], (read, now) => {
          const last = parsed<EventBatch>(key, read(key));
          if (last !== undefined && last.sequence >= batch.sequence) return { answer: undefined };
          const document = { key, value: JSON.stringify(batch), made: batch, endMs: now + BATCH_MEMORY_MS };
          return { answer: undefined, changes: { documents: [document], events } };
        });
      },
    },
    receipts: book,
    mandates: documentRegister(transact),
    checkouts: documentClaims(transact),
    secrets: {
      // The first process writes a value, all read it.
      agree: (secret, candidate) =>
        transact([`secret:${secret}`], (read) => {
          const found = read(`secret:${secret}`)?.value;
          if (found !== undefined) return { answer: found };
          return { answer: candidate, changes: { documents: [{ key: `secret:${secret}`, value: candidate }] } };
        }),
    },
    ...(work === undefined ? {} : { work }),
    census: ledger.census,
    check: documentHealth(commits, transact, health),
    async tidy() {
      await ledger.tidy();
      const more = await book.tidy();
      return engine.giveBack?.() === true || more;
    },
    close,
  };
}

/** The key of a probe, and how long the probe stays after the last check, milliseconds. */
const PROBE_KEY = 'ready';
const PROBE_KEEP_MS = 60_000;
/** Errors of a server that answers but takes no writes. */
const UNWRITABLE = /\b(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM)\b/;

const LOST =
  'the store lost its data: checkouts and open mandates from before are refused, they may have been used; ' +
  'openFrom 0 in the document ap2:epoch accepts the open mandates again';

/**
 * Writes and reads back: a read-only replica and a full disk still answer reads. Only a process
 * that has seen an epoch can tell a store that lost its data from a new one. Never rejects.
 */
function documentHealth(
  store: Commits,
  transact: Transact,
  { epoch: first, log, unanswered }: HealthParts,
): () => Promise<StoreHealth> {
  let known: number | undefined;
  return async function check() {
    const token = randomUUID();
    try {
      // The epoch comes first: a claim made while the store opens finds it.
      const { born } = await transact([EPOCH_KEY], (find, now) => {
        const found = parsed<RegisterEpoch>(EPOCH_KEY, find(EPOCH_KEY));
        const answer = keepEpoch(found, known, first, now);
        return answer === found
          ? { answer }
          : { answer, changes: { documents: [{ key: EPOCH_KEY, value: JSON.stringify(answer), made: answer }] } };
      });
      const probe = { key: PROBE_KEY, value: token, version: token.slice(0, 16), endMs: store.now() + PROBE_KEEP_MS };
      await store.commit({ documents: [probe] }, 'now');
      const read = (await store.read([PROBE_KEY])).get(PROBE_KEY)?.value;
      // A birth that an operator has set back is no loss.
      if (known !== undefined && born > known) log?.warn({ since: new Date(born).toISOString() }, LOST);
      known = born;
      return read === token ? { status: 'ok' } : { status: 'unwritable', cause: 'a written value was not read back' };
    } catch (thrown) {
      const cause = thrown instanceof StoreError ? thrown.cause : thrown;
      const text = cause instanceof Error ? cause.message : String(cause);
      return { status: UNWRITABLE.test(text) ? 'unwritable' : unanswered, cause: text };
    }
  };
}
