import { StoreError } from '../../src/store/port/store-error.ts';

/**
 * Asks again while the store does not answer: on a busy machine a command may miss its deadline. A
 * repeated command changes nothing.
 */
export async function insist<Answer>(ask: () => Promise<Answer>, tries = 5): Promise<Answer> {
  for (let tried = 1; ; tried += 1)
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof StoreError) || tried === tries) throw thrown;
    }
}
