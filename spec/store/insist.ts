import { StoreError } from '../../src/store/port/store.ts';

const TRIES = 5;

/**
 * Asks again while the store does not answer: on a busy machine a command may take longer than it
 * may. The same command is harmless.
 */
export async function insist<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let tried = 1; ; tried += 1)
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof StoreError) || tried === TRIES) throw thrown;
    }
}
