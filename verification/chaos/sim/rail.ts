/** The rails of the simulation, which settle on its chain and fail as `Fate` decides. */

import type { RailVerdict, Reading, Settlement, SettlementHistory } from '../../../src/payments/rail.ts';
import type { PaymentRail, Proof } from '../../../src/payments/x402/wire/types.ts';
import type { Process } from './gateway.ts';
import type { Schedule } from './schedule.ts';

/**
 * What becomes of one attempt to settle. `before`: lost before it was sent. `after`: sent, the
 * answer is lost. `late`: sent, mined much later, the answer is lost. `hang`: no answer for a
 * minute, nothing sent. `refused`: refused for good. `excluded`: the node reports that it does not
 * hold the transaction. `lied`: as `excluded`, and it mines it much later; a facilitator reports
 * neither.
 */
export type SettleFault = 'ok' | 'before' | 'after' | 'late' | 'hang' | 'refused' | 'excluded' | 'lied';
/**
 * `local`: signs and sends itself. `remote`: a facilitator sends, a chain is asked. `blind`: a
 * facilitator and no chain to ask.
 */
export type RailKind = 'local' | 'remote' | 'blind';

/** How rail and chain behave in one run. */
export interface RailFaults {
  settle(): SettleFault;
  /** Whether the verdict does not come. */
  verifyFails(): boolean;
  /** Whether the chain gives no reading now. */
  chainSilent(): boolean;
  chainLagMs(): number;
  lateMs(): number;
}

const HANG_MS = 60_000;
const CONFIRM_PAUSE_MS = 500;
const LOOKS = 3;
const NO_READING = { kind: 'unknown', cause: 'the node is silent' } as const;

type Answer = 'claimed' | 'used' | 'denied' | 'none';

/** The sender of transactions, behind the rails of all processes. Its replies are true. */
export class Facilitator {
  readonly #banned = new Set<string>();
  /** Transactions in the pool: a node does not refuse what its pool holds. */
  readonly #pending = new Set<string>();
  readonly #chain: SimChain;
  readonly #schedule: Schedule;
  readonly #faults: RailFaults;

  constructor(chain: SimChain, schedule: Schedule, faults: RailFaults) {
    this.#chain = chain;
    this.#schedule = schedule;
    this.#faults = faults;
  }

  verify(nonce: string): RailVerdict {
    if (this.#faults.verifyFails()) return { kind: 'unavailable', cause: 'no verdict' };
    if (this.#chain.used(nonce)) return { kind: 'refused', reason: 'nonce_already_used', nonceSpent: true };
    if (this.#chain.expired(nonce)) return { kind: 'refused', reason: 'expired', nonceSpent: false };
    if (this.#banned.has(nonce)) return { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false };
    return { kind: 'valid' };
  }

  settle(nonce: string, fault: SettleFault): Answer {
    if (fault === 'refused') this.ban(nonce);
    const refusal = this.#chain.used(nonce) ? 'used' : this.#banned.has(nonce) ? 'denied' : undefined;
    if (fault === 'before' || fault === 'hang' || fault === 'excluded') return 'none';
    const late = fault === 'late' || fault === 'lied';
    if (refusal !== undefined) return fault === 'after' || late ? 'none' : refusal;
    if (late) {
      this.#pending.add(nonce);
      this.#schedule.after(this.#faults.lateMs(), {
        kind: 'world',
        label: 'late block',
        actor: undefined,
        run: () => void this.#chain.mine(nonce),
      });
      return 'none';
    }
    const mined = this.#chain.mine(nonce);
    if (fault === 'after') return 'none';
    return mined === 'mined' ? 'claimed' : mined === 'used' ? 'used' : 'denied';
  }

  /** From now on a transfer of this authorization fails before it is sent. */
  ban(nonce: string): void {
    if (!this.#pending.has(nonce)) this.#banned.add(nonce);
  }

  read(nonce: string): Reading {
    return this.#faults.chainSilent() ? NO_READING : this.#chain.read(nonce, this.#faults.chainLagMs());
  }
}

/** The rail of one process, as the port describes it. */
export function createSimRail(
  process: Process,
  kind: RailKind,
  facilitator: Facilitator,
  faults: RailFaults,
  chain: SimChain,
): PaymentRail {
  const read = (nonce: string): Promise<Reading> => process.call('chain.read', () => facilitator.read(nonce));
  const confirm = async (nonce: string, looks: number): Promise<Settlement> => {
    for (let left = looks; ; left -= 1) {
      const shown = await read(nonce);
      if (shown.kind === 'settled' || shown.kind === 'refused') return shown;
      if (left <= 1) return { kind: 'uncertain', cause: 'the chain does not show it' };
      await process.time.sleep(CONFIRM_PAUSE_MS);
    }
  };
  const verify = (proof: Proof): Promise<RailVerdict> => {
    const nonce = nonceOf(proof);
    return process.call('rail.verify', () => facilitator.verify(nonce));
  };

  const settleLocally = async (
    proof: Proof,
    writeAhead: Parameters<PaymentRail['settle']>[2],
    { sentBefore, withdrawnBefore = false }: SettlementHistory,
  ): Promise<Settlement> => {
    const nonce = nonceOf(proof);
    const fault = faults.settle();
    const verdict = fault === 'refused' ? refusedNow(facilitator, nonce) : await verify(proof);
    if (verdict.kind === 'unavailable' || verdict.kind === 'unfunded') return notSent(sentBefore, verdict.cause);
    if (verdict.kind === 'refused')
      return sentBefore || withdrawnBefore || verdict.nonceSpent
        ? confirm(nonce, 1)
        : { kind: 'refused', reason: verdict.reason, evidence: 'unsent' };
    const hash = transactionOf(nonce);
    try {
      await writeAhead({ hash, raw: `${hash}02` });
    } catch (cause) {
      return notSent(sentBefore, `nothing was sent: ${String(cause)}`);
    }
    const answer = await process.call('rail.send', () => facilitator.settle(nonce, fault), hangMs(fault));
    if (!sentBefore && (fault === 'excluded' || fault === 'lied'))
      return { kind: 'withdrawn', reason: 'relayer_unfunded', cause: 'no node took it', transaction: hash };
    if (answer === 'none') return { kind: 'uncertain', cause: 'the broadcast failed', transaction: hash };
    return confirm(nonce, LOOKS);
  };

  const settleRemotely = async (proof: Proof, sentBefore: boolean): Promise<Settlement> => {
    const nonce = nonceOf(proof);
    const fault = faults.settle();
    const answer = await process.call('rail.settle', () => facilitator.settle(nonce, fault), hangMs(fault));
    if (answer === 'none') return { kind: 'uncertain', cause: 'no answer' };
    if (kind === 'remote') return confirm(nonce, answer === 'denied' ? 1 : LOOKS);
    if (answer === 'claimed') return { kind: 'settled', evidence: 'claim', transaction: transactionOf(nonce) };
    if (answer === 'denied' && !sentBefore) return { kind: 'refused', reason: 'denied', evidence: 'unsent' };
    return { kind: 'uncertain', cause: answer };
  };

  return {
    facilitator: kind === 'local' ? 'local' : 'remote',
    seesChain: () => kind !== 'blind',
    verify,
    settle: (proof, _offer, writeAhead, history = { sentBefore: false }) =>
      kind === 'local' ? settleLocally(proof, writeAhead, history) : settleRemotely(proof, history.sentBefore),
    async reconcile(proof) {
      const nonce = nonceOf(proof);
      if (kind !== 'blind') return read(nonce);
      return chain.expired(nonce) ? NO_READING : { kind: 'open' };
    },
    check: async () => undefined,
  };
}

/** What an attempt that sent nothing leaves, where an earlier one may have sent. */
function notSent(sentBefore: boolean, cause: string): Settlement {
  return sentBefore ? { kind: 'uncertain', cause } : { kind: 'withdrawn', reason: 'provider_unavailable', cause };
}

function refusedNow(facilitator: Facilitator, nonce: string): RailVerdict {
  facilitator.ban(nonce);
  return facilitator.verify(nonce);
}

function hangMs(fault: SettleFault): number {
  return fault === 'hang' ? HANG_MS : 0;
}

function nonceOf({ payload }: Proof): string {
  return payload.payload.authorization.nonce;
}

/** The state of an authorization on chain. */
type Use =
  | { readonly how: 'paid'; readonly at: number; readonly transaction: string }
  /** Cancelled by the payer, or paid to another payee. */
  | { readonly how: 'elsewhere'; readonly at: number };

/**
 * The chain: each nonce is used once, while its time is not over, and stays used. Blocks come every
 * second.
 */
export class SimChain {
  readonly #uses = new Map<string, Use>();
  readonly #ends = new Map<string, number>();
  readonly #now: () => number;
  /** Transfers to the payee by nonce. */
  readonly transfers = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** An authorization was signed; `validBefore` in Unix seconds. */
  signed(nonce: string, validBefore: number): void {
    this.#ends.set(nonce, validBefore);
  }

  validBefore(nonce: string): number {
    const ends = this.#ends.get(nonce);
    if (ends === undefined) throw new Error('an unsigned authorization');
    return ends;
  }

  /** A block takes the transfer, unless the nonce is used or its time over. */
  mine(nonce: string): 'mined' | 'used' | 'expired' {
    if (this.#uses.has(nonce)) return 'used';
    if (this.#head() >= this.validBefore(nonce)) return 'expired';
    this.#uses.set(nonce, { how: 'paid', at: this.#now(), transaction: transactionOf(nonce) });
    this.transfers.set(nonce, (this.transfers.get(nonce) ?? 0) + 1);
    return 'mined';
  }

  /** The payer uses the nonce for something else. */
  spendElsewhere(nonce: string): void {
    if (!this.#uses.has(nonce) && this.#head() < this.validBefore(nonce))
      this.#uses.set(nonce, { how: 'elsewhere', at: this.#now() });
  }

  paid(nonce: string): boolean {
    return this.#uses.get(nonce)?.how === 'paid';
  }

  used(nonce: string): boolean {
    return this.#uses.has(nonce);
  }

  expired(nonce: string): boolean {
    return this.#head() >= this.validBefore(nonce);
  }

  /** What a node shows that is `lagMs` behind. */
  read(nonce: string, lagMs: number): Reading {
    const seenAt = this.#now() - lagMs;
    const use = this.#uses.get(nonce);
    if (use !== undefined && use.at <= seenAt)
      return use.how === 'paid'
        ? { kind: 'settled', evidence: 'logs', transaction: use.transaction }
        : { kind: 'refused', evidence: 'elsewhere', reason: 'authorization_spent_elsewhere' };
    if (Math.floor(seenAt / 1_000) >= this.validBefore(nonce))
      return { kind: 'refused', evidence: 'expired', reason: 'authorization_expired' };
    return { kind: 'open' };
  }

  /** Time of the newest block, Unix seconds. */
  #head(): number {
    return Math.floor(this.#now() / 1_000);
  }
}

/**
 * The hash of a transfer; the same for every sender, because the gateway must not depend on the
 * sender.
 */
export function transactionOf(nonce: string): string {
  return `0x${nonce.slice(2).split('').reverse().join('')}`;
}
