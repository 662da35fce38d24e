/** Makes a store of an engine: everything that is the same over each of them. */

import { documentClaims } from '../../checkouts/document-claims.ts';
import type { EventBatch } from '../../events/event.ts';
import { documentRegister } from '../../mandates/document-register.ts';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import { documentLedger } from '../../payments/ledger/document-ledger.ts';
import { documentBook } from '../../receipts/document-book.ts';
import type { Commits } from '../port/commit.ts';
import type { StoreLimits } from '../port/settings.ts';
import { createTransact, parsed } from '../port/transact.ts';
import { documentHealth } from './health.ts';
import type { Store } from './store.ts';

/** How long the last batch of a queue is remembered, far longer than one is repeated. */
const BATCH_MEMORY_MS = 3_600_000;

/** The parts of a store that each engine has of its own. */
export interface Engine extends Pick<Store, 'name' | 'work' | 'close'> {
  readonly commits: Commits;
  readonly feed: Omit<Store['feed'], 'append'>;
  /** Gives unused space back. True: there is more. */
  giveBack?(): boolean;
}

/** `epoch`: what an empty register of mandates begins with, by default now. */
export function storeOver(
  engine: Engine,
  limits: StoreLimits,
  health: {
    readonly epoch: RegisterEpoch | undefined;
    readonly log: { warn(fields: object, message: string): void } | undefined;
    readonly unanswered: 'unreachable' | 'unwritable';
  },
): Store {
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
