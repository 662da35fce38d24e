/** Choices that depend on a name alone, so that a seed replays a run. */

import { createHash } from 'node:crypto';
import type { Hex } from 'viem';

/**
 * A stream of choices that depends on its name alone: the same name always makes the same choices.
 */
export interface Seed {
  /** True with this probability, 0 to 1. */
  chance(probability: number): boolean;
  /** A number from `from` to below `to`. */
  between(from: number, to: number): number;
  /** @throws Error for an empty list */
  pick<T>(list: readonly T[]): T;
  /** 32 bytes, for keys and nonces of a test chain. */
  bytes32(): Hex;
  /** An independent stream, whatever was drawn from this one. */
  fork(name: string): Seed;
}

/** The stream of a name. */
export function seedOf(name: string): Seed {
  let drawn = 0;
  const draw = (): Buffer => {
    drawn += 1;
    return createHash('sha256').update(`${name}\0${drawn}`).digest();
  };
  const unit = (): number => draw().readUInt32BE(0) / 2 ** 32;
  return {
    chance: (probability) => unit() < probability,
    between: (from, to) => from + unit() * (to - from),
    pick: (list) => {
      const picked = list[Math.floor(unit() * list.length)];
      if (picked === undefined) throw new Error('nothing to pick from');
      return picked;
    },
    bytes32: () => `0x${draw().toString('hex')}`,
    fork: (child) => seedOf(`${name}/${child}`),
  };
}
