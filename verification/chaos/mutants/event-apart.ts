/** Mutant: the events of a transition are written separately, a moment later. */

import type { EventDraft } from '../../../src/events/event.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { createWriteBehind } from '../../../src/store/port/write-behind.ts';
import { misbehave } from './misbehave.ts';

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
