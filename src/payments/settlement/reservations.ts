import type { Time } from '../../time/time.ts';
import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentLedger, Reservation, Reserve } from '../ledger/ledger.ts';
import { mayStandAfter, PATIENT_PAUSES_MS, persist } from './persist.ts';

/** Reservations that are asked about at the same time: a store that was away for long must not be met by all who came meanwhile. */
const ASKED_AT_ONCE = 64;

/** Reservations of calls that go away when the store does not answer. */
export interface Reservations {
  /**
   * Reserves. A store that hung may carry it out when no call waits for it any more; so behind the call that was told "the store is away"
   * it is asked again, under the same owner, and what it then holds is given back: the buyer's next try must not find its own proof taken.
   * @throws whatever the ledger throws
   */
  reserve(command: Reserve): Promise<Reservation>;
}

export function createReservations(
  ledger: Pick<PaymentLedger, 'reserve' | 'discard' | 'note'>,
  time?: Time,
): Reservations {
  let asked = 0;
  const giveBack = async (command: Reserve): Promise<void> => {
    const answer = await persist(() => ledger.reserve(command), time, PATIENT_PAUSES_MS);
    if (answer.kind !== 'granted') return;
    const { record } = answer;
    if (record.state === 'reserved') await ledger.discard(fencingToken(record), []);
    else await ledger.note({ ...fencingToken(record), leaseMs: 0 });
  };
  return {
    async reserve(command) {
      try {
        return await ledger.reserve(command);
      } catch (thrown) {
        if (asked < ASKED_AT_ONCE && mayStandAfter(thrown)) {
          asked += 1;
          // Its lease ends by itself all the same.
          void giveBack(command)
            .catch(() => undefined)
            .finally(() => {
              asked -= 1;
            });
        }
        throw thrown;
      }
    },
  };
}
