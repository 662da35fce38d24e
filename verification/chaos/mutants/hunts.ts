/** The hunts: for each mutant a scenario that only the true build passes. */

import { programFile } from '../../../spec/support/program.ts';
import { dieAndReturn } from '../steps/deaths.ts';
import { cancelNonce, failOnce, leaveUnanswered, respell, sendCopies } from './hunts-proof.ts';
import { dropReply, evict } from './hunts-redis.ts';
import { shiftClock, wakeLate } from './hunts-replicas.ts';
import type { Build, Stage } from './stage.ts';

/**
 * A small scenario that the true build passes and a build with this mistake does not. Nothing in it
 * is left to chance.
 */
export interface Hunt {
  /** What the mutant does, after "a build that". */
  readonly mistake: string;
  readonly mutant: Build;
  /** The message of the check that notices it. */
  readonly notices: RegExp;
  readonly run: (stage: Stage) => Promise<void>;
}

const REDIS = { store: 'redis', rail: 'local' } as const;

export const HUNTS: readonly Hunt[] = [
  {
    mistake: 'reserves after it has settled',
    mutant: built('reserve-after-settle'),
    notices: /copies of one proof are one purchase/,
    run: sendCopies,
  },
  {
    mistake: 'takes the bytes of a proof for its identity',
    mutant: built('raw-proof-key'),
    notices: /one authorization is one purchase/,
    run: respell,
  },
  {
    mistake: 'asks for a new payment when a settlement is not answered',
    mutant: built('refuse-on-timeout'),
    notices: /402 while the money may move/,
    run: leaveUnanswered,
  },
  {
    mistake: 'deletes the record after a failure',
    mutant: built('delete-on-failure'),
    notices: /what must not be repeated is sent once/,
    run: failOnce,
  },
  {
    mistake: 'takes a spent nonce for a payment',
    mutant: built('trust-nonce-state'),
    notices: /nothing is delivered unpaid/,
    run: cancelNonce,
  },
  {
    mistake: 'lets every process write',
    mutant: built('no-fence'),
    notices: /a stale write does not end the lease/,
    run: wakeLate,
  },
  {
    mistake: 'measures leases with its own clock',
    mutant: built('pod-clock'),
    notices: /a running call is left alone/,
    run: shiftClock,
  },
  {
    mistake: 'writes the event after the state',
    mutant: built('event-apart'),
    notices: /one payment\.settled/,
    run: ({ ground, build }) => die(ground, build, 'settled'),
  },
  {
    mistake: 'calls a call delivered before its answer is complete',
    mutant: built('early-delivered'),
    notices: /calls of the backend, always/,
    run: ({ ground, build }) => die(ground, build, 'relaying'),
  },
  {
    mistake: 'gives a repeated write a new token',
    mutant: built('new-token'),
    notices: /a write whose reply was lost counts once/,
    run: dropReply,
  },
  {
    mistake: 'uses a Redis that evicts',
    mutant: { maxmemoryPolicy: 'allkeys-lru' },
    notices: /a full memory forgets no payment/,
    run: evict,
  },
];

function built(name: string): Build {
  return { entry: programFile(`verification/chaos/mutants/${name}.ts`) };
}

async function die(ground: Stage['ground'], build: Build, step: 'settled' | 'relaying'): Promise<void> {
  const launch = build.entry === undefined ? {} : { entry: build.entry };
  await dieAndReturn(ground, { where: REDIS, kind: 'GET', step }, launch);
}
