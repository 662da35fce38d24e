import type { EventDraft } from '../../../src/events/event.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { createWriteBehind } from '../../../src/store/port/write-behind.ts';
import { misbehave } from './misbehave.ts';

/**
 * The events of a transition go the way of all other events: in a write of their own, a moment
 * later.
 */
function apart(store: Store): Store {
  const events = createWriteBehind<EventDraft>((batch, id) => store.feed.append(batch, id));
  return {
    ...store,
    ledger: {
      ...store.ledger,
      async advance(command) {
        const written = await store.ledger.advance({ ...command, events: [] });
        if (written.kind === 'done') for (const event of command.events) events.push(event);
        return written;
      },
    },
    async close() {
      await events.close();
      await store.close();
    },
  };
}

await misbehave({ store: apart });
