/** A whole gateway process as the target of attacks. */

import assert from 'node:assert/strict';
import type { ConfigObject } from '../../spec/support/config.ts';
import { startWorld, type World } from '../../spec/support/world.ts';
import { residentBytes } from '../bench/meter.ts';

/**
 * A whole gateway process with every channel on, a chain and a backend that records its requests.
 */
export interface Target extends World {
  readonly url: string;
  /** Fails unless the first process still runs, is ready and sells. */
  stillSells(): Promise<void>;
  /** Resident memory of the process, bytes. */
  residentBytes(): number;
}

/** Starts it. `overrides` as in `worldConfig`. */
export async function openTarget(overrides: ConfigObject = {}): Promise<Target> {
  const channels = { mcp: { enabled: true }, a2a: { enabled: true } };
  return targetOf(await startWorld({ overrides: { protocols: channels, ...overrides } }));
}

/** A running world as a target. */
export function targetOf(world: World): Target {
  const url = world.gateway.baseUrl;
  let gone: string | undefined;
  void world.gateway.ended.then(({ code, signal }) => {
    gone = `ended with ${signal ?? code}`;
  });
  return {
    ...world,
    url,
    residentBytes: () => residentBytes(world.gateway.pid),
    async stillSells() {
      assert.equal(gone, undefined, world.gateway.output());
      const ready = await fetch(`${url}/ready`);
      assert.equal(ready.status, 200, await ready.text());
      const echoed = await fetch(`${url}/api/resources/free_echo/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"still":"sells"}',
      });
      assert.equal(await echoed.text(), '{"still":"sells"}');
    },
  };
}
