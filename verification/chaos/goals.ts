/** What must never happen in a run; each goal is a number that has to be 0. */

import type { ChainLedger } from './chain-ledger.ts';
import type { Work } from './merchant.ts';
import type { PowerCut } from './power.ts';
import type { StoreLedger } from './store-ledger.ts';
import type { CallStory } from './story.ts';

/** What must never happen. Each is a number of the report that has to be 0. */
export const GOALS = [
  'doubleSettled',
  'settledNotDeliveredNorRedeemable',
  'deliveredToNobody',
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

/** One broken goal, with the call it happened to; 0 where it is nobody's in particular. */
export interface Violation {
  readonly goal: Goal;
  readonly call: number;
  readonly what: string;
}

/** The three ledgers and the buyers' own. */
export interface Evidence {
  readonly calls: readonly CallStory[];
  readonly chain: ChainLedger;
  readonly work: ReadonlyMap<string, Work>;
  readonly store: StoreLedger;
  readonly cuts: readonly PowerCut[];
  /** Records that were still open when everything was quiet. */
  readonly open: readonly string[];
}

/**
 * What a power cut may take and nothing else may: counted, and bounded by the payments that were
 * under way in the lost seconds.
 */
export interface Excused {
  receiptsLost: number;
  moneyEventsLost: number;
  plainPostsRepeated: number;
  secondAnswers: number;
  marksLost: number;
  bound: number;
}

/** Says that a goal is broken. */
export type Accuse = (goal: Goal, what: string) => void;
