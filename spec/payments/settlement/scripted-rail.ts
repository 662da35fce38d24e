import type { RailVerdict, Reading, Settlement } from '../../../src/payments/rail.ts';
import type { PaymentRail } from '../../../src/payments/x402/wire/types.ts';

/** A transaction hash. */
export const HASH = `0x${'ab'.repeat(32)}`;
/** Paid, as the chain shows it. */
export const PAID = { kind: 'settled', evidence: 'logs', transaction: HASH } as const;
/** Never to be paid any more, as the chain shows it. */
export const EXPIRED = { kind: 'refused', reason: 'expired', evidence: 'expired' } as const;
/** The verdict on a nonce that was used before. */
export const SPENT = { kind: 'refused', reason: 'invalid_exact_evm_nonce_already_used', nonceSpent: true } as const;

type WriteAhead = Parameters<PaymentRail['settle']>[2];

/** What the rail was asked, in order. `amount` in base units. */
interface Asked {
  readonly what: 'verify' | 'settle' | 'reconcile';
  readonly amount: string;
  readonly sentBefore?: boolean;
  readonly knownTransaction?: string;
}

/**
 * A rail that a test scripts: the one peer that cannot be real here. At first it approves
 * and settles everything.
 */
export function scriptedRail() {
  const asked: Asked[] = [];
  const script = {
    seesChain: true,
    verify: async (): Promise<RailVerdict> => ({ kind: 'valid' }),
    settle: async (_write: WriteAhead): Promise<Settlement> => PAID,
    reconcile: async (): Promise<Reading> => ({ kind: 'open' }),
    markOf: async (): Promise<string | undefined> => undefined,
    sentBack: async (): Promise<boolean> => false,
  };
  const rail: PaymentRail = {
    facilitator: 'local',
    get seesChain() {
      return script.seesChain;
    },
    verify: (_proof, { amount }) => {
      asked.push({ what: 'verify', amount });
      return script.verify();
    },
    settle: (_proof, { amount }, writeAhead, { transaction: _known, ...history } = { sentBefore: false }) => {
      asked.push({ what: 'settle', amount, ...history });
      return script.settle(writeAhead);
    },
    reconcile: (_proof, { amount }, { transaction: knownTransaction } = { sentBefore: false }) => {
      asked.push({ what: 'reconcile', amount, ...(knownTransaction === undefined ? {} : { knownTransaction }) });
      return script.reconcile();
    },
    markOf: () => script.markOf(),
    sentBack: () => script.sentBack(),
    check: async () => undefined,
  };
  return { rail, script, asked, names: () => asked.map(({ what }) => what) };
}
