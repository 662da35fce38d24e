import { REAL_TIME, type Time } from './time.ts';

/** Pauses between attempts, milliseconds: long enough for a store that fails over inside a script, short enough for a caller. */
const PAUSES_MS = [50, 250, 1_000] as const;

/**
 * Repeats a write that must not be lost once money has moved. The command carries one step token, so a repetition after a lost
 * reply changes nothing twice. When the store stays silent the answer says so instead of throwing: the caller then answers
 * "uncertain" and the record's lease lets another attempt find out.
 */
export async function persist<T>(
  write: () => Promise<T>,
  time: Pick<Time, 'sleep'> = REAL_TIME,
): Promise<T | { readonly kind: 'unwritten'; readonly cause: unknown }> {
  for (const pause of PAUSES_MS) {
    try {
      return await write();
    } catch {
      await time.sleep(pause);
    }
  }
  try {
    return await write();
  } catch (cause) {
    return { kind: 'unwritten', cause };
  }
}
