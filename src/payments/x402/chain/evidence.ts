/** Decides from the logs of a transaction receipt whether an authorization paid (x402 5.1). */

import { hexWord } from '../evm/abi-words.ts';

/** `AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)`. */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** `AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)`. */
export const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** `Transfer(address indexed from, address indexed to, uint256 value)`. */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** The payment to look for. Hex in any case, `value` in base units as a decimal string. */
export interface ExpectedPayment {
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
  readonly payTo: string;
  readonly value: string;
}

/** A log of a receipt, hex in lower case. */
export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: number;
}

export interface TransactionReceipt {
  readonly transactionHash: string;
  readonly blockNumber: bigint;
  readonly succeeded: boolean;
  readonly logs: readonly Log[];
}

/**
 * `elsewhere`: the authorization was spent here, but not on us. `unclear`: it was spent here, and
 * this payer paid us this sum here, but the order of the logs does not tie the two together.
 */
type ReceiptFinding = 'paid' | 'elsewhere' | 'unclear' | 'absent';

/**
 * The log pair rule (x402 5.1): the asset logged that the authorization was used, and its next log
 * is the transfer of exactly this value to the payee. A batch holds several pairs, so the transfer
 * of one authorization must not count for another; and a used nonce without its transfer proves
 * nothing.
 */
export function findPayment(receipt: TransactionReceipt, payment: ExpectedPayment): ReceiptFinding {
  if (!receipt.succeeded) return 'absent';
  const logs = logsOf(receipt, payment.asset);
  const [used, from, nonce] = [AUTHORIZATION_USED, topic(payment.from), topic(payment.nonce)];
  const at = logs.findIndex(({ topics }) => topics[0] === used && topics[1] === from && topics[2] === nonce);
  if (at === -1) return 'absent';
  const next = logs[at + 1];
  if (next !== undefined && isTransfer(next, payment)) return 'paid';
  // A transfer right behind another authorization belongs to that one; a lone one may be ours.
  const alone = logs.some((log, i) => isTransfer(log, payment) && logs[i - 1]?.topics[0] !== used);
  return alone ? 'unclear' : 'elsewhere';
}

/** A payment that a receipt shows. Hex in lower case, `units` in base units. */
export interface ShownPayment {
  readonly from: string;
  readonly nonce: string;
  readonly units: bigint;
}

/** Every payment to the payee by the log pair rule, in the order of the logs. */
export function paymentsIn(
  receipt: TransactionReceipt,
  { asset, payTo }: Pick<ExpectedPayment, 'asset' | 'payTo'>,
): readonly ShownPayment[] {
  if (!receipt.succeeded) return [];
  const logs = logsOf(receipt, asset);
  return logs.flatMap(({ topics: [event, payer = '', nonce = ''] }, i) => {
    const next = event === AUTHORIZATION_USED ? logs[i + 1] : undefined;
    if (next === undefined) return [];
    const payment = { from: `0x${payer.slice(-ADDRESS_DIGITS)}`, nonce, units: unitsOf(next) ?? 0n };
    return payment.units > 0n && isTransfer(next, { ...payment, payTo, value: String(payment.units) }) ? [payment] : [];
  });
}

const ADDRESS_DIGITS = 40;

/** What the asset itself logged, in order. */
function logsOf(receipt: TransactionReceipt, asset: string): readonly Log[] {
  const address = asset.toLowerCase();
  return receipt.logs.filter((log) => log.address === address).sort((a, b) => a.logIndex - b.logIndex);
}

function isTransfer(log: Log, { from, payTo, value }: Pick<ExpectedPayment, 'from' | 'payTo' | 'value'>): boolean {
  const { topics } = log;
  return (
    topics[0] === TRANSFER && topics[1] === topic(from) && topics[2] === topic(payTo) && unitsOf(log) === BigInt(value)
  );
}

function unitsOf({ data }: Log): bigint | undefined {
  return /^0x[0-9a-f]{64}$/.test(data) ? BigInt(data) : undefined;
}

/** An indexed value as a topic: one word, lower case. */
export function topic(hex: string): string {
  return `0x${hexWord(hex)}`;
}
