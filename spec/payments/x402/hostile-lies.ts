import { INVENTED_TRANSACTION, type ScriptedAnswer } from '../../support/hostile-facilitator.ts';
import { json, text } from './hostile-answers.ts';
import { freshAddress } from './signing.ts';

/** What a hostile facilitator knows when it answers `/settle`. */
export interface Situation {
  readonly network: string;
  readonly payer: string;
  /** The transaction that paid, when there is one; else an invented one. */
  readonly transaction: string;
  /** Another payment of the same payer and sum. */
  readonly foreign: string;
}

export type Lie = (situation: Situation) => ScriptedAnswer;

const success = (at: Situation, changes: object = {}): object => ({
  success: true,
  transaction: at.transaction,
  network: at.network,
  payer: at.payer,
  ...changes,
});
const denial = (at: Situation, errorReason: unknown, changes: object = {}): object => ({
  success: false,
  errorReason,
  transaction: '',
  network: at.network,
  payer: at.payer,
  ...changes,
});
const claims = (changes: (at: Situation) => object, status = 200): Lie => {
  return (at) => json(success(at, changes(at)), status);
};
const denies = (reason: unknown, changes: (at: Situation) => object = () => ({}), status = 200): Lie => {
  return (at) => json(denial(at, reason, changes(at)), status);
};

const SPENT = 'invalid_exact_evm_nonce_already_used';
const PENDING = 'settlement_pending';
const invented = (): object => ({ transaction: INVENTED_TRANSACTION });
const foreign = ({ foreign: transaction }: Situation): object => ({ transaction });
const genuine = ({ transaction }: Situation): object => ({ transaction });

/** Readable answers to `/settle`, each of them false for at least one outcome of the payment. */
export const LIES: readonly (readonly [what: string, lie: Lie])[] = [
  ['success, with the hash if there is one', claims(() => ({}))],
  ['success, hash in capitals', claims((at) => ({ transaction: `0x${at.transaction.slice(2).toUpperCase()}` }))],
  ['success, transaction invented', claims(invented)],
  ['success, another payment', claims(foreign)],
  ['success, hash too short', claims(() => ({ transaction: '0xabc' }))],
  ['success, hash without 0x', claims((at) => ({ transaction: at.transaction.slice(2) }))],
  ['success, hash an object', claims(() => ({ transaction: { toString: 'x' } }))],
  ['success, no hash', claims(() => ({ transaction: '' }))],
  ['success, another network', claims(() => ({ network: 'eip155:1' }))],
  ['success, no network', claims(() => ({ network: undefined }))],
  ['success, another payer', claims(() => ({ payer: freshAddress() }))],
  ['success, a payer that is a number', claims(() => ({ payer: 7 }))],
  ['success and a reason against it', claims(() => ({ errorReason: 'insufficient_funds' }))],
  ['success in a 500', claims(() => ({}), 500)],
  ['success in a 502, transaction invented', claims(invented, 502)],
  ['success in a 402', claims(() => ({}), 402)],
  ['success as text', claims(() => ({ success: 'true' }))],
  ['success as a number', claims(() => ({ success: 1 }))],
  ['success in an array', (at) => json([success(at)])],
  [
    'success and failure under one name',
    (at) => text(`{"success":false,"errorReason":"insufficient_funds",${JSON.stringify(success(at)).slice(1)}`),
  ],
  ['success in a redirect', (at) => ({ kind: 'redirect', status: 301, location: '/settle', body: success(at) })],
  ['insufficient funds', denies('insufficient_funds')],
  ['insufficient funds in a 402', denies('insufficient_funds', () => ({}), 402)],
  ['insufficient funds in a 500', denies('insufficient_funds', () => ({}), 500)],
  ['insufficient funds, with a hash', denies('insufficient_funds', invented)],
  ['insufficient funds, for another network', denies('insufficient_funds', () => ({ network: 'eip155:1' }))],
  ['a forged signature', denies('invalid_exact_evm_payload_signature')],
  ['expired', denies('invalid_exact_evm_payload_authorization_valid_before')],
  ['simulation failed', denies('invalid_exact_evm_transaction_simulation_failed')],
  ['transaction failed', denies('invalid_exact_evm_transaction_failed', genuine)],
  ['nonce used', denies(SPENT)],
  ['nonce used, by another payment', denies(SPENT, foreign)],
  ['nonce used, in a 409', denies(SPENT, () => ({}), 409)],
  ['cancelled', denies('authorization_cancelled')],
  ['pending, with the hash', denies(PENDING, genuine)],
  ['pending, transaction invented', denies(PENDING, invented)],
  ['pending, another payment', denies(PENDING, foreign)],
  ['pending, in a 202 and with an id', denies(PENDING, () => ({ paymentId: 'p1' }), 202)],
  ['an unexpected error', denies('unexpected_settle_error')],
  ['a reason in prose', denies('Error: execution reverted 0xdead')],
  ['a reason of 10,000 characters', denies('x'.repeat(10_000))],
  ['no reason', denies(undefined)],
];
