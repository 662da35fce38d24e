/** The parts that a wrong design replaces in the simulation. */

import type { Exchange } from '../../../src/backend/exchange.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import type { PaymentRail } from '../../../src/payments/x402/wire/types.ts';
import type { ResponseWriter } from '../../../src/pipeline/call.ts';
import type { Commits } from '../../../src/store/port/commit.ts';
import type { SimChain } from './chain.ts';
import type { HeldRecord } from './store.ts';

/** A wrong design, made of changed ports: the simulator must notice it. */
export interface Mutant {
  readonly name: string;
  /** One of the laws that it breaks. */
  readonly shows: RegExp;
  /** Of every run; otherwise each seed has its own. */
  readonly settle?: 'after';
  /** It shows only when a process dies at one certain await. */
  readonly needsCrashes?: boolean;
  /** The record that a reservation sees instead of the stored one. */
  reads?(record: HeldRecord, now: number): HeldRecord | undefined;
  /** The port to the store of one process. */
  commits?(commits: Commits, process: string): Commits;
  ledger?(ledger: PaymentLedger): PaymentLedger;
  rail?(rail: PaymentRail, chain: SimChain): PaymentRail;
  exchange?(exchange: Exchange): Exchange;
  responseWriter?(responseWriter: ResponseWriter): ResponseWriter;
}
