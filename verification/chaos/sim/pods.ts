/** The processes of a simulated run, which crash and start again. */

import type { SimGateway } from './gateway.ts';
import type { Schedule } from './schedule.ts';

/** What the pods need of the world. */
export interface PodParts {
  readonly schedule: Schedule;
  /** A new process; its name is unique. */
  readonly start: (name: string) => SimGateway;
  /** When the store next has something due, milliseconds. */
  readonly nextDueAt: () => number;
  readonly roundMs: () => number;
}

interface Pod {
  readonly name: string;
  gateway: SimGateway;
  nextRound: number;
}

/** Two pods in which gateways run: a process that dies is started again in its pod. */
export class Pods {
  readonly #parts: PodParts;
  readonly #pods: readonly Pod[];

  constructor(parts: PodParts) {
    this.#parts = parts;
    this.#pods = ['A', 'B'].map((name) => ({
      name,
      gateway: parts.start(name),
      nextRound: parts.schedule.now + parts.roundMs(),
    }));
  }

  /** The gateway of a buyer's n-th attempt. */
  at(number: number): SimGateway {
    const pod = this.#pods[number % this.#pods.length];
    if (pod === undefined) throw new Error('no pod');
    return pod.gateway;
  }

  /** Ends a process; its pod starts another one later. */
  crash({ process }: SimGateway, restartMs: number): void {
    process.alive = false;
    const pod = this.#pods.find(({ gateway }) => gateway.process === process);
    if (pod === undefined) return;
    const run = (): void => this.#restart(pod);
    this.#parts.schedule.after(restartMs, { kind: 'world', label: 'restart', actor: undefined, run });
  }

  /** Every process runs. */
  endFaults(): void {
    for (const pod of this.#pods) {
      const { process } = pod.gateway;
      if (process.pausedUntil > this.#parts.schedule.now) process.pausedUntil = this.#parts.schedule.now;
      this.#restart(pod);
    }
  }

  /**
   * The next round of a reconciler that would find something; a round that finds nothing changes
   * nothing, so it is left out.
   */
  nextRound(): { readonly at: number; readonly run: () => void } | undefined {
    const { schedule, nextDueAt, roundMs } = this.#parts;
    const dueAt = nextDueAt();
    if (!Number.isFinite(dueAt)) return undefined;
    const beginOf = ({ gateway: { process }, nextRound }: Pod): number =>
      process.alive ? Math.max(nextRound, dueAt, process.pausedUntil) : Number.POSITIVE_INFINITY;
    const [first] = this.#pods.toSorted((one, other) => beginOf(one) - beginOf(other));
    if (first === undefined || !first.gateway.process.alive) return undefined;
    const run = (): void => {
      schedule.log(`${first.gateway.process.name} round`);
      first.nextRound = schedule.now + roundMs();
      void first.gateway.reconciler.round();
    };
    return { at: beginOf(first), run };
  }

  #restart(pod: Pod): void {
    if (pod.gateway.process.alive) return;
    const { schedule, start, roundMs } = this.#parts;
    schedule.log(`${pod.name} starts`);
    pod.gateway = start(pod.name);
    pod.nextRound = schedule.now + roundMs();
  }
}
