import type { CheckoutClaims } from '../../../src/checkouts/claims.ts';
import type { ClaimWatch, Idempotency, KeyedCall, KeyedEnd } from '../../../src/checkouts/idempotency.ts';
import { createIdempotency } from '../../../src/checkouts/machine.ts';
import { createSessions } from '../../../src/checkouts/sessions.ts';
import { SETTINGS } from '../bed.ts';
import type { SimMerchant } from './backend.ts';
import type { Laws } from './laws.ts';
import { type Manner, type Mutant, TIMEOUT_MS } from './plan.ts';
import type { Process, World } from './world.ts';

/** How a call ended for who made it: `gone`: the gateway died; `left`: the caller did not wait. */
export type Heard = KeyedEnd<string> | { readonly kind: 'gone' | 'left' };

/** Gateways on one store. One that died is replaced at once. */
export interface Gateways {
  /** `patienceMs`: how long the caller waits. The gateway does not listen to that. */
  call(which: number, call: KeyedCall, patienceMs: number): Promise<Heard>;
  /** How often something came to pass. */
  readonly tally: ReadonlyMap<string, number>;
}

/** The shop. */
export const DEPLOYMENT = 'shop';

interface Running {
  readonly process: Process;
  readonly idempotency: Idempotency;
}

export function openGateways(
  world: World,
  parts: { readonly claims: CheckoutClaims; readonly merchant: SimMerchant; readonly laws: Laws },
  manner: Manner,
  mutant: Mutant,
): Gateways {
  const { claims, merchant, laws } = parts;
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
    const line = world.line(process, claims);
    const time = {
      now: () => world.schedule.now,
      sleep: (ms: number) => world.hear(process, 'wakes', ms),
    };
    const parts = {
      claims: mutant.claims?.(line) ?? line,
      settings: {
        ...SETTINGS,
        merchant: manner === 'settles' ? 'read-back-only' : 'derived-key',
        ...mutant.settings,
      },
      deploymentId: DEPLOYMENT,
      time: mutant.time?.(time) ?? time,
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
        const work = merchant.work(call, process);
        void idempotency.run(call, TIMEOUT_MS, mutant.work?.(work) ?? work).then((end) => {
          process.atEnd.delete(gone);
          count(`ended ${end.kind}${end.kind === 'answered' ? ` ${end.from}` : ''}`);
          resolve(end);
        });
      });
    },
  };
}
