/** A backend in a process of its own, which is killed and stopped. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePorts } from '../../../spec/support/ports.ts';
import { ended } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';

/**
 * `answers`; `closes` every connection it accepts; `cuts` each one when it has read the request.
 */
export type Manner = 'answers' | 'closes' | 'cuts';

/** A backend that can be killed and stopped. */
export interface AwayMerchant {
  readonly url: string;
  /** Resolves when it listens. */
  start(manner?: Manner): Promise<void>;
  /** `kill -9`: from now on connections are refused. */
  kill(): Promise<void>;
  /** SIGSTOP: the operating system accepts connections, and nothing answers. */
  stop(): void;
  /** SIGCONT. */
  goOn(): void;
}

/** `workMs`: how long an answer takes. */
export async function awayMerchant(workMs: number): Promise<AwayMerchant> {
  const [port = 0] = await freePorts(1);
  let child: ChildProcess | undefined;
  return {
    url: `http://127.0.0.1:${port}`,
    async start(manner = 'answers') {
      const args = [join(import.meta.dirname, 'merchant-main.ts'), String(port), manner, String(workMs)];
      const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      leash(started);
      child = started;
      await once(started.stdout, 'data');
    },
    async kill() {
      const killed = child;
      child = undefined;
      if (killed === undefined) return;
      killed.kill('SIGKILL');
      await ended(killed);
    },
    stop: () => void child?.kill('SIGSTOP'),
    goOn: () => void child?.kill('SIGCONT'),
  };
}
