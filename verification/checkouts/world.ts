import type { Commits } from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import type { Chance } from '../chaos/sim/chance.ts';
import { type Actor, Schedule, type Step } from '../chaos/sim/schedule.ts';

/** Timeout of a command of the store, milliseconds. */
const COMMAND_MS = 500;

/** A process: it ends, or stands still for a while, before any reply that it gets. */
export interface Process extends Actor {
  alive: boolean;
  pausedUntil: number;
  /** Called when the process ends. */
  readonly atEnd: Set<() => void>;
}

/** The clock, and the connections of all processes. */
export interface World {
  readonly schedule: Schedule;
  /** Ends all faults. */
  faultsOver: boolean;
  /** Runs even when the process is dead. */
  later(ms: number, label: string, run: () => void): void;
  /** Resolves when a process gets a reply; never when it has died before. */
  reply(process: Process, label: string, ms: number): Promise<void>;
  /** The store as a process reaches it: over a connection that loses commands and replies. */
  line(process: Process, store: Commits): Commits;
  process(name: string): Process;
  /** Runs the steps of a time, milliseconds. */
  pass(ms: number): Promise<void>;
}

/** Most steps of one run. */
const MOST_STEPS = 20_000;

export function createWorld(chance: Chance, traced: boolean): World {
  const schedule = new Schedule(traced);
  const processes = new Map<string, Process>();

  const injectFault = ({ actor }: Step): void => {
    const process = processes.get(actor?.name ?? '');
    if (process === undefined || world.faultsOver) return;
    if (chance.happens(0.04)) {
      process.alive = false;
      schedule.log(`${process.name} dies`);
      for (const end of process.atEnd) end();
    } else if (chance.happens(0.03)) {
      process.pausedUntil = schedule.now + chance.pick([1_000, 10_000, 40_000, 90_000]);
      schedule.log(`${process.name} stands still`);
    }
  };

  const world: World = {
    schedule,
    faultsOver: false,
    later: (ms, label, run) => schedule.after(ms, { kind: 'world', label, actor: undefined, run }),
    reply: (actor, label, ms) =>
      new Promise((resolve) => schedule.after(ms, { kind: 'reply', label, actor, run: resolve })),
    line(process, store) {
      const over = async <Answer>(label: string, command: () => Promise<Answer>): Promise<Answer> => {
        const fault = world.faultsOver
          ? 'none'
          : chance.pick(['none', 'none', 'none', 'none', 'none', ...FAULTS] as const);
        const lost = fault !== 'none' && chance.happens(0.3) ? fault : 'none';
        const { promise: ran, resolve } = Promise.withResolvers<Answer | undefined>();
        world.later(1 + chance.below(10), `store ${label}${lost === 'none' ? '' : `, ${lost} lost`}`, () =>
          resolve(lost === 'request' ? undefined : command()),
        );
        const answer = await ran;
        await world.reply(process, label, lost === 'none' ? 1 + chance.below(10) : chance.pick([1, COMMAND_MS]));
        if (lost !== 'none' || answer === undefined) throw new StoreError(new Error(`${lost} lost`));
        return answer;
      };
      return {
        ...store,
        commit: (commit, how) => over('commit', () => store.commit(commit, how)),
        read: (keys) => over('read', () => store.read(keys)),
      };
    },
    process(name) {
      const made: Process = { name, alive: true, pausedUntil: 0, atEnd: new Set() };
      processes.set(name, made);
      return made;
    },
    async pass(ms) {
      const conductor = { injectFault, arrivesWithoutSender: () => true, nextRound: () => undefined };
      if (!(await schedule.run(conductor, schedule.now + ms, MOST_STEPS))) throw new Error('the run does not end');
    },
  };
  return world;
}

const FAULTS = ['request', 'reply'] as const;
