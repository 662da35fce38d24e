/** The health of a store: whether it takes writes, and the epoch of its register of mandates. */

import { randomUUID } from 'node:crypto';
import { EPOCH_KEY } from '../../mandates/document-register.ts';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import { keepEpoch } from '../../mandates/register/register-table.ts';
import type { Commits } from '../port/commit.ts';
import { StoreError, type StoreHealth } from '../port/store-error.ts';
import { parsed, type Transact } from '../port/transact.ts';

/** What a check writes and reads back, and how long it stays after the last check, milliseconds. */
const PROBE_KEY = 'ready';
const PROBE_KEEP_MS = 60_000;
/** Errors of a server that answers but takes no writes. */
const UNWRITABLE = /\b(READONLY|OOM|MISCONF|NOREPLICAS|NOPERM)\b/;

const LOST =
  'the store lost its data: checkouts and open mandates from before are refused, they may have been used; ' +
  'openFrom 0 in the document ap2:epoch accepts the open mandates again';

/**
 * Writes and reads back: a read-only replica and a full disk still answer reads. Only a process
 * that has seen an epoch can tell a store that lost its data from a new one. `epoch`: what an empty
 * register begins with, by default now. `unanswered`: what it means that there was no answer. Never
 * rejects.
 */
export function documentHealth(
  store: Commits,
  transact: Transact,
  {
    epoch: first,
    log,
    unanswered,
  }: {
    readonly epoch: RegisterEpoch | undefined;
    readonly log: { warn(fields: object, message: string): void } | undefined;
    readonly unanswered: 'unreachable' | 'unwritable';
  },
): () => Promise<StoreHealth> {
  let known: number | undefined;
  return async function check() {
    const token = randomUUID();
    try {
      // First: a claim that comes while the store opens finds it.
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
