/** Runs one hunt and ends what it started. */

import assert from 'node:assert/strict';
import type { GatewayProcess } from '../../../spec/support/gateway-process.ts';
import type { PaidCall } from '../steps/buyer.ts';
import type { Ground } from '../steps/ground.ts';
import type { Purchase } from '../steps/purchases.ts';
import type { Launch, Site } from '../steps/site.ts';

/** The build under test: the true one, or one with a mistake. */
export interface Build {
  /** Entry file of the gateway; the true one unless given. */
  readonly entry?: string;
  /** What Redis does when its memory is full (`maxmemory-policy`). */
  readonly maxmemoryPolicy?: 'noeviction' | 'allkeys-lru';
}

/** One hunt's ground and build, and everything that has to end with it. */
export interface Stage {
  readonly ground: Ground;
  readonly build: Build;
  /** A gateway of this build, killed at the end. */
  start(site: Site, launch?: Launch): Promise<GatewayProcess>;
  /** Anything else that has to be stopped. */
  keep<T extends { stop(): Promise<unknown> }>(thing: T): T;
}

/** Runs a hunt and ends what it started, last started first. @throws what the hunt throws */
export async function onStage(ground: Ground, build: Build, hunt: (stage: Stage) => Promise<void>): Promise<void> {
  const ends: (() => Promise<unknown>)[] = [];
  const entry = build.entry === undefined ? {} : { entry: build.entry };
  const stage: Stage = {
    ground,
    build,
    async start(site, launch = {}) {
      const gateway = await site.start({ ...entry, ...launch });
      ends.push(() => gateway.kill());
      return gateway;
    },
    keep(thing) {
      ends.push(() => thing.stop());
      return thing;
    },
  };
  try {
    await hunt(stage);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** Compares how often the backend was called for a purchase, under any key. */
export function assertAsked({ merchant: backend }: Ground, purchase: Purchase, times: number, why: string): void {
  assert.equal(backend.requests.filter((request) => purchase.asks(request)).length, times, why);
}

/** The same under the key of the purchase, for operations that carry no mark. */
export function assertExecuted(
  { merchant: backend }: Pick<Ground, 'merchant'>,
  call: PaidCall,
  times: number,
  why: string,
): void {
  assert.equal(backend.executions(call.merchantKey), times, why);
}
