import type { DatabaseSync } from 'node:sqlite';

/**
 * Most works in one commit: it blocks the event loop while it runs. What is left goes into the next
 * one.
 */
export const MAX_GROUP = 64;

/** Works that share commits. */
interface GroupCommit {
  /**
   * Runs `work` between a begin and a commit that others may share, and answers after that commit.
   */
  write<T>(work: () => T): Promise<T>;
  /** Runs and commits at once what waits. */
  drain(): void;
}

interface Waiting {
  /** Throws what the work throws, and keeps what it returns. */
  readonly run: () => void;
  readonly resolve: () => void;
  readonly reject: (thrown: unknown) => void;
}

/**
 * What is asked for in one turn of the event loop shares one transaction and one fsync, which is
 * nearly all that a write costs. Begin, works and commit run in one go, so nobody else on this
 * connection ever sees a work that is not committed. Each work is all or nothing for itself: one
 * that throws is undone and rejects alone. A begin or a commit that fails rejects all.
 *
 * The commit waits for `setImmediate`, the end of the turn, not for the end of the microtasks:
 * requests of several connections are read in one turn, each with microtasks of its own, and do not
 * meet there. Measured on a file, 16 and 64 connections: 2.7 and 3.6 times the transitions a second
 * this way, no gain the other way. One caller alone pays a few percent at most: the turn ends at
 * once when there is nothing else to do, and the fsync takes far longer.
 *
 * `committed` is called after each commit; it must not throw.
 */
export function groupCommit(db: DatabaseSync, committed: () => void = () => undefined): GroupCommit {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const mark = db.prepare('SAVEPOINT work');
  const undo = db.prepare('ROLLBACK TO work');
  const unmark = db.prepare('RELEASE work');
  let waiting: Waiting[] = [];
  let scheduled = false;

  /** @throws what ended the whole transaction. */
  const attempt = ({ run, resolve, reject }: Waiting): (() => void) => {
    mark.run();
    try {
      run();
      unmark.run();
      return resolve;
    } catch (thrown) {
      // A full disk and the like end the transaction for all.
      if (!db.isTransaction) throw thrown;
      undo.run();
      unmark.run();
      return () => reject(thrown);
    }
  };
  const abandon = (): void => {
    try {
      if (db.isOpen && db.isTransaction) rollback.run();
    } catch {
      // The callers hear of the first fault; the next begin will hear of this one.
    }
  };
  const commitGroup = (group: readonly Waiting[]): void => {
    let answers: readonly (() => void)[];
    try {
      begin.run();
      answers = group.map(attempt);
      commit.run();
      committed();
    } catch (thrown) {
      abandon();
      answers = group.map(
        ({ reject }) =>
          () =>
            reject(thrown),
      );
    }
    for (const answer of answers) answer();
  };
  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      const group = waiting.splice(0, MAX_GROUP);
      if (waiting.length > 0) schedule();
      if (group.length > 0) commitGroup(group);
    });
  };
  return {
    write<T>(work: () => T): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        let result: T;
        waiting.push({
          run: () => {
            result = work();
          },
          resolve: () => resolve(result),
          reject,
        });
        schedule();
      });
    },
    drain() {
      const left = waiting;
      waiting = [];
      if (left.length > 0) commitGroup(left);
    },
  };
}
