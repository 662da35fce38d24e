import { SETTINGS } from '../../spec/checkouts/bed.ts';
import { documentClaims } from '../../src/checkouts/document-claims.ts';
import type { ClaimWatch, Idempotency, KeyedCall, KeyedEnd } from '../../src/checkouts/idempotency.ts';
import { createIdempotency } from '../../src/checkouts/machine.ts';
import { createSessions } from '../../src/checkouts/sessions.ts';
import type { Commits } from '../../src/store/port/commit.ts';
import { createTransact } from '../../src/store/port/transact.ts';
import type { SimBackend } from './backend.ts';
import type { Laws } from './laws.ts';
import { type Manner, TIMEOUT_MS } from './plan.ts';
import type { Process, World } from './world.ts';

/** How a call ended for its caller. `gone`: the gateway died; `left`: the caller did not wait. */
export type CallEnd = KeyedEnd<string> | { readonly kind: 'gone' | 'left' };

/** Gateways on one store. A dead one is replaced at once. */
export interface Gateways {
  /** `patienceMs`: how long the caller waits; the gateway does not know it. */
  call(which: number, call: KeyedCall, patienceMs: number): Promise<CallEnd>;
  /** How often each end happened. */
  readonly tally: ReadonlyMap<string, number>;
}

export const DEPLOYMENT = 'merchant';

interface Running {
  readonly process: Process;
  readonly idempotency: Idempotency;
}

export function openGateways(
  world: World,
  parts: { readonly store: Commits; readonly backend: SimBackend; readonly laws: Laws },
  manner: Manner,
): Gateways {
  const { store, backend, laws } = parts;
  const tally = new Map<string, number>();
  const running = new Map<number, Running>();
  let started = 0;
  const count = (what: string): void => void tally.set(what, (tally.get(what) ?? 0) + 1);
  const watch: ClaimWatch = {
    claimed: count,
    leaseExpired: () => count('lease expired'),
    unknown: (why) => count(why),
    fenced: () => count('fenced'),
    unstored() {
      count('unstored');
      laws.unstored();
    },
    unopened: () => laws.broken('an answer could not be opened'),
    foreign: () => count('foreign'),
  };

  const start = (): Running => {
    started += 1;
    const process = world.process(`gateway ${started}`);
    const claims = documentClaims(createTransact(world.line(process, store)));
    const time = {
      now: () => world.schedule.now,
      sleep: (ms: number) => world.reply(process, 'wakes', ms),
    };
    const parts = {
      claims: claims,
      settings: {
        ...SETTINGS,
        merchant: manner === 'settles' ? 'read-back-only' : 'derived-key',
      },
      deploymentId: DEPLOYMENT,
      time,
    } as const;
    const idempotency = createIdempotency({
      ...parts,
      sessions: createSessions({ ...parts, servesUnknown: false }),
      longestTimeoutMs: TIMEOUT_MS,
      watch,
    });
    return { process, idempotency };
  };
  const alive = (which: number): Running => {
    const found = running.get(which);
    if (found?.process.alive) return found;
    const fresh = start();
    running.set(which, fresh);
    return fresh;
  };

  return {
    tally,
    call(which, call, patienceMs) {
      const { process, idempotency } = alive(which);
      return new Promise((resolve) => {
        const gone = (): void => world.later(50, 'connection ends', () => resolve({ kind: 'gone' }));
        process.atEnd.add(gone);
        if (Number.isFinite(patienceMs)) world.later(patienceMs, 'caller leaves', () => resolve({ kind: 'left' }));
        void idempotency.run(call, TIMEOUT_MS, backend.work(call, process)).then((end) => {
          process.atEnd.delete(gone);
          count(`ended ${end.kind}${end.kind === 'answered' ? ` ${end.from}` : ''}`);
          resolve(end);
        });
      });
    },
  };
}
