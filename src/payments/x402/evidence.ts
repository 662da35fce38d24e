import { hexWord } from './words.ts';

/** `AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)`. */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** `AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)`. */
export const AUTHORIZATION_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** `Transfer(address indexed from, address indexed to, uint256 value)`. */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** The payment that is looked for. Hex in any case, `value` in base units as a decimal string. */
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
  readonly succeeded: boolean;
  readonly logs: readonly Log[];
}

/**
 * What a receipt says about an authorization. `elsewhere`: it was spent here, but not on us. `unclear`: it was spent here and we were
 * paid this sum by this payer here, but not in the order that ties the two together.
 */
export type ReceiptFinding = 'paid' | 'elsewhere' | 'unclear' | 'absent';

/**
 * The log pair rule (x402.md 8.4): the asset logged that the authorization was used, and its next log is the transfer of exactly
 * this value to the payee. In a batch several pairs stand behind one another, so the transfer of one authorization must not count
 * for another; and a used nonce without its transfer proves nothing.
 */
export function findPayment(receipt: TransactionReceipt, payment: ExpectedPayment): ReceiptFinding {
  if (!receipt.succeeded) return 'absent';
  const asset = payment.asset.toLowerCase();
  const logs = receipt.logs.filter((log) => log.address === asset).sort((a, b) => a.logIndex - b.logIndex);
  const [used, from, nonce] = [AUTHORIZATION_USED, topic(payment.from), topic(payment.nonce)];
  const at = logs.findIndex(({ topics }) => topics[0] === used && topics[1] === from && topics[2] === nonce);
  if (at === -1) return 'absent';
  const next = logs[at + 1];
  if (next !== undefined && isTransfer(next, payment)) return 'paid';
  // A transfer right behind another authorization belongs to that one; one that stands alone may be this one's, in another order.
  const alone = logs.some((log, i) => isTransfer(log, payment) && logs[i - 1]?.topics[0] !== used);
  return alone ? 'unclear' : 'elsewhere';
}

function isTransfer({ topics, data }: Log, { from, payTo, value }: ExpectedPayment): boolean {
  return (
    topics[0] === TRANSFER &&
    topics[1] === topic(from) &&
    topics[2] === topic(payTo) &&
    /^0x[0-9a-f]{64}$/.test(data) &&
    BigInt(data) === BigInt(value)
  );
}

/** An indexed value as a topic: one word, lower case. */
export function topic(hex: string): string {
  return `0x${hexWord(hex)}`;
}
