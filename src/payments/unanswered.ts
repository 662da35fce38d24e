import type { Time } from '../time.ts';
import { holder } from './holder.ts';
import type { PaymentLedger, Reserve } from './ledger/ledger.ts';
import { mayStandAfter, PATIENT_PAUSES_MS, persist } from './persist.ts';

/** Reservations that are asked about at the same time: a store that was away for long must not be met by all who came meanwhile. */
export const ASKED_AT_ONCE = 64;

/** Reservations whose reply never came: a store that hung may carry them out when no call waits for them any more. */
export interface UnansweredReservations {
  /**
   * Asks again, under the same owner, until the store answers, and gives back what it then holds, so that the buyer's next try does not
   * find its own proof taken by a call that was told "the store is away". Never throws.
   */
  giveBack(command: Reserve, cause: unknown): void;
}

export function unansweredReservations(
  ledger: Pick<PaymentLedger, 'reserve' | 'discard' | 'note'>,
  time?: Time,
): UnansweredReservations {
  let asked = 0;
  const returned = async (command: Reserve): Promise<void> => {
    const answer = await persist(() => ledger.reserve(command), time, PATIENT_PAUSES_MS);
    if (answer.kind !== 'run') return;
    const { record } = answer;
    if (record.state === 'reserved') await ledger.discard(holder(record), []);
    else await ledger.note({ ...holder(record), leaseMs: 0 });
  };
  return {
    giveBack(command, cause) {
      if (asked >= ASKED_AT_ONCE || !mayStandAfter(cause)) return;
      asked += 1;
      // Its lease ends by itself all the same.
      void returned(command)
        .catch(() => undefined)
        .finally(() => {
          asked -= 1;
        });
    },
  };
}
