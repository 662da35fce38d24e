/** Decides from the logs of a transaction receipt whether an authorization paid (x402 5.1). */

import { isAddressEqual, parseEventLogs } from 'viem/utils';
import { ASSET_ABI, lowerHex } from '../evm/calldata.ts';
import type { TransactionReceipt } from './client.ts';

/** The payment to look for. Hex in any case, `value` in base units as a decimal string. */
export interface ExpectedPayment {
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
  readonly payTo: string;
  readonly value: string;
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
  return paymentFinder(receipt, payment.asset)(payment);
}

/** The same for many payments of one receipt, whose logs are decoded once. */
export function paymentFinder(
  receipt: TransactionReceipt,
  asset: string,
): (payment: ExpectedPayment) => ReceiptFinding {
  const logs = assetLogs(receipt, asset);
  const uses = new Map<string, number>();
  for (const [at, log] of logs.entries()) {
    const name = isUse(log) ? nameOf(log.args.authorizer, log.args.nonce) : undefined;
    if (name !== undefined && !uses.has(name)) uses.set(name, at);
  }
  return function find(payment) {
    const at = uses.get(nameOf(payment.from, payment.nonce));
    if (at === undefined) return 'absent';
    if (isTransfer(logs[at + 1], payment)) return 'paid';
    // A transfer right behind another authorization belongs to that one; a lone one may be ours.
    const alone = logs.some((log, i) => isTransfer(log, payment) && !isUse(logs[i - 1]));
    return alone ? 'unclear' : 'elsewhere';
  };
}

function nameOf(from: string, nonce: string): string {
  return `${from} ${nonce}`.toLowerCase();
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
  const logs = assetLogs(receipt, asset);
  return logs.flatMap((log, i) => {
    const next = logs[i + 1];
    if (!isUse(log) || next?.eventName !== 'Transfer') return [];
    const [from, nonce, units] = [lowerHex(log.args.authorizer), log.args.nonce, next.args.value];
    return units > 0n && isTransfer(next, { from, payTo, value: String(units) }) ? [{ from, nonce, units }] : [];
  });
}

/**
 * Transfers of exactly this value to the payee by others, whatever they were for, but for those
 * that an authorization made: its nonce says what such a transfer is. Each by its place among the
 * logs of the asset in this transaction.
 */
export function plainTransfersTo(
  receipt: TransactionReceipt,
  { asset, payTo, value }: Pick<ExpectedPayment, 'asset' | 'payTo' | 'value'>,
): readonly number[] {
  return assetLogs(receipt, asset).flatMap((log, i, logs) => {
    if (log?.eventName !== 'Transfer' || isUse(logs[i - 1])) return [];
    const { from } = log.args;
    return !isAddressEqual(from, lowerHex(payTo)) && isTransfer(log, { from, payTo, value }) ? [i] : [];
  });
}

/** One log of the asset. Undefined is one of another event, which has its place in the order. */
type AssetLog = ReturnType<typeof parseEventLogs<typeof ASSET_ABI>>[number] | undefined;

/** What the asset itself logged, in order; nothing when the transaction failed. */
function assetLogs({ status, logs }: TransactionReceipt, asset: string): readonly AssetLog[] {
  if (status !== 'success') return [];
  const own = logs.filter((log) => isAddressEqual(log.address, lowerHex(asset)));
  const known = new Map(parseEventLogs({ abi: ASSET_ABI, logs: own }).map((log) => [log.logIndex, log]));
  return own.toSorted((a, b) => a.logIndex - b.logIndex).map(({ logIndex }) => known.get(logIndex));
}

function isUse(log: AssetLog): log is AssetLog & { readonly eventName: 'AuthorizationUsed' } {
  return log?.eventName === 'AuthorizationUsed';
}

function isTransfer(log: AssetLog, { from, payTo, value }: Pick<ExpectedPayment, 'from' | 'payTo' | 'value'>): boolean {
  return (
    log?.eventName === 'Transfer' &&
    isAddressEqual(log.args.from, lowerHex(from)) &&
    isAddressEqual(log.args.to, lowerHex(payTo)) &&
    log.args.value === BigInt(value)
  );
}
