/** What must never happen in a run; each goal counts its violations. */

import type { ChainLedger } from './chain-ledger.ts';
import type { Work } from './merchant.ts';
import type { PowerCut } from './power.ts';
import type { StoreLedger } from './store-ledger.ts';
import type { CallStory } from './story.ts';

/** Each goal is a number of the report that has to be 0. */
export const GOALS = [
  'doubleSettled',
  'settledNotDeliveredNorRedeemable',
  'deliveryLost',
  'deliveredUnpaid',
  'challengedAfterSettle',
  'executionsNotOne',
  'plainPostRepeated',
  'wrongAnswers',
  'secondAnswers',
  'keyHolderRefused',
  'unexpectedAnswers',
  'unfinished',
  'stateUntrue',
  'deliveredUnmarked',
  'markedUnsent',
  'receiptsMissing',
  'moneyEventsMissing',
  'duplicateReceipts',
  'duplicateMoneyEvents',
  'incomeUnexplained',
  'openAfterQuiesce',
] as const;
export type Goal = (typeof GOALS)[number];

/** One broken goal, with its call; 0 where it belongs to no call. */
export interface Violation {
  readonly goal: Goal;
  readonly call: number;
  readonly what: string;
}

/** The ledgers of chain, backend and store, and what the buyers saw. */
export interface Evidence {
  readonly calls: readonly CallStory[];
  readonly chain: ChainLedger;
  readonly work: ReadonlyMap<string, Work>;
  readonly store: StoreLedger;
  readonly cuts: readonly PowerCut[];
  /** Records that were still open when everything was quiet. */
  readonly open: readonly string[];
}

/** What only a power cut may lose: counted, and bounded by the payments in the lost seconds. */
export interface Excused {
  receiptsLost: number;
  moneyEventsLost: number;
  plainPostsRepeated: number;
  secondAnswers: number;
  marksLost: number;
  bound: number;
}

/** Reports a broken goal. */
export type Accuse = (goal: Goal, what: string) => void;
