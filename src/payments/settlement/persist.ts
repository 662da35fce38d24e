import { REAL_TIME, type Time } from '../../time/time.ts';

/** Pauses between attempts, milliseconds: long enough for a store that fails over inside a script, short enough for a caller. */
const PAUSES_MS: readonly number[] = [50, 250, 1_000];
/** The same where no caller waits: a store that restarts or fails over must not cost the write. */
export const PATIENT_PAUSES_MS: readonly number[] = [50, 250, 1_000, 2_000, 4_000, 8_000, 15_000];

/** `mayStand`: whether one of the attempts may have been written all the same. */
export interface Unwritten {
  readonly kind: 'unwritten';
  readonly cause: unknown;
  readonly mayStand: boolean;
}

/**
 * Repeats a write that must not be lost once money has moved. The command carries one step token, so a repetition after a lost
 * reply changes nothing twice. When the store stays silent the answer says so instead of throwing: the caller then answers
 * "uncertain" and the record's lease lets another attempt find out.
 */
export async function persist<T>(
  write: () => Promise<T>,
  time: Pick<Time, 'sleep'> = REAL_TIME,
  pauses: Iterable<number> = PAUSES_MS,
): Promise<T | Unwritten> {
  const left = pauses[Symbol.iterator]();
  let mayStand = false;
  for (;;) {
    try {
      return await write();
    } catch (cause) {
      mayStand ||= mayStandAfter(cause);
      const pause = left.next();
      if (pause.done === true) return { kind: 'unwritten', cause, mayStand };
      await time.sleep(pause.value);
    }
  }
}

/** The same pause until `forMs` milliseconds are over, however long each attempt takes. */
export function* pausesFor(forMs: number, pauseMs: number, time: Pick<Time, 'now'>): Iterable<number> {
  const end = time.now() + forMs;
  while (time.now() < end) yield pauseMs;
}

/** Whether a write that failed so may have been made all the same: stores say so on their errors, and what says nothing may stand. */
export function mayStandAfter(cause: unknown): boolean {
  return !(cause instanceof Error && 'mayStand' in cause && cause.mayStand === false);
}
