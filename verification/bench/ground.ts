/** What suites without interleaved turns of one contestant share: cores, stage and load. */

import { type Cores, chooseCores } from './cores.ts';
import { type Load, startLoad } from './load.ts';
import { type Entries, type Stage, setStage } from './stage.ts';
import type { Measurement } from './verdict.ts';

/** What a suite gets. */
export interface MeasuringParts {
  readonly entries: Entries;
  readonly signal: AbortSignal;
  /** Turns of each side, where the suite has no number of its own. */
  readonly rounds: number;
  /** Entry of an earlier gateway, for suites that compare by themselves. */
  readonly before: string | undefined;
  tell(line: string): void;
}

/** The values of rows by their ids. */
export type Measured = ReadonlyMap<string, Measurement>;

/** A stage with its load generator. */
export interface Ground {
  readonly stage: Stage;
  readonly load: Load;
  readonly cores: Cores;
}

/** Sets a stage and starts the load. */
export async function groundFor(
  ends: AsyncDisposableStack,
  { entries, signal }: Pick<MeasuringParts, 'entries' | 'signal'>,
): Promise<Ground> {
  const cores = chooseCores();
  const stage = await setStage(ends, { cores, signal, profile: undefined, entries });
  const load = startLoad(cores.others);
  ends.defer(() => load.stop());
  return { stage, load, cores };
}
