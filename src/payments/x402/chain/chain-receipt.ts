/** Makes the receipt of a payment that only the chain shows, for `acg reconcile`. */

import { getAddress } from 'viem/utils';
import type { Receipt } from '../../../receipts/receipt.ts';
import { paymentReceiptId } from '../../ledger/payment-receipt.ts';
import { formatAmount } from '../../pricing/amount.ts';
import { replayKey } from '../wire/payload-schema.ts';
import type { X402Config } from '../wire/settings.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../wire/window.ts';
import type { ChainPayment } from './payment-logs.ts';

/** A price that a payment may have been for. `units` in base units. */
export interface Price {
  readonly resourceId: string;
  readonly units: bigint;
  readonly currency: string;
}

/** `resourceId` of a payment that fits no price, or more than one. */
const UNKNOWN_RESOURCE = 'unknown';

/**
 * Its id is the one that the gateway gives the same payment. Delivery, channel and request are
 * unknown to the chain and stay open.
 * @param at when it is written
 */
export function receiptFromChain(
  payment: ChainPayment,
  terms: Pick<
    X402Config,
    'network' | 'chainId' | 'asset' | 'assetName' | 'assetDecimals' | 'payTo' | 'maxTimeoutSeconds'
  >,
  prices: readonly Price[],
  at: Date,
): Receipt {
  const { from, nonce, units, transaction, time, validBefore } = payment;
  const payId = replayKey({ chainId: terms.chainId, asset: terms.asset, from, nonce });
  const [price, another] = prices.filter((candidate) => candidate.units === units);
  const { maxTimeoutSeconds } = terms;
  // No proof is accepted with a longer life; only payers who went past the gateway set one.
  const latest = BigInt(time + maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS);
  const end = validBefore !== undefined && validBefore <= latest ? Number(validBefore) : time + maxTimeoutSeconds;
  return {
    id: paymentReceiptId(payId, end, maxTimeoutSeconds),
    requestId: `chain_${payId.slice(0, 32)}`,
    resourceId: price !== undefined && another === undefined ? price.resourceId : UNKNOWN_RESOURCE,
    protocol: 'http',
    at: at.toISOString(),
    delivered: false,
    backendStatus: 0,
    durationMs: 0,
    payment: {
      status: 'settled',
      provider: 'x402',
      amount: formatAmount(units, terms.assetDecimals),
      currency: price?.currency ?? prices[0]?.currency ?? terms.assetName,
      network: terms.network,
      asset: terms.asset,
      payer: getAddress(from as `0x${string}`),
      payee: terms.payTo,
      externalReference: transaction,
      replayKey: payId,
      settledAt: new Date(time * 1_000).toISOString(),
    },
    metadata: { recovered: 'chain' },
  };
}
