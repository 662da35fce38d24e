/** The call that moves the money of one authorization, and the gas of one or many of them. */

import { aggregateCall, MULTICALL3, marked, transferCall } from '../evm/calldata.ts';
import type { Eip3009Authorization, Proof } from '../wire/types.ts';
import type { RelayedCall } from './relayer.ts';

/** Gas limits of a transfer; a payer that is a contract runs its own code, within a cap. */
export const ACCOUNT_GAS = 160_000n;
const CONTRACT_GAS = 400_000n;
/** Gas limit of a batch: for the transaction, and for each transfer in it. */
const BATCH_GAS = 60_000n;
const EACH_GAS = 100_000n;

/** A transfer with its gas limit when it is sent alone. */
export interface Transfer {
  readonly data: `0x${string}`;
  readonly gas: bigint;
  readonly authorization: Eip3009Authorization;
  readonly signedBy: Proof['signedBy'];
}

export function transferOf({ payload, signedBy }: Proof): Transfer {
  const { authorization, signature } = payload.payload;
  const data = transferCall(authorization, signature, signedBy);
  return { data, authorization, signedBy, gas: signedBy === 'account' ? ACCOUNT_GAS : CONTRACT_GAS };
}

/** A transfer, and the mark that goes behind it on the chain. */
interface MarkedTransfer {
  readonly transfer: Transfer;
  readonly mark: string | undefined;
}

/** One transfer as it is; several through Multicall3, where one that fails stops no other. */
export function relayedCall(asset: string, payments: readonly MarkedTransfer[]): RelayedCall {
  const calls = payments.map(({ transfer, mark }) => marked(transfer.data, mark));
  const [only, another] = calls;
  const gas = gasOf(payments.map(({ transfer }) => transfer));
  return only !== undefined && another === undefined
    ? { to: asset, data: only, gas }
    : { to: MULTICALL3, data: aggregateCall(asset, calls), gas };
}

export function gasOf(transfers: readonly Transfer[]): bigint {
  const [only, another] = transfers;
  return only !== undefined && another === undefined ? only.gas : batchGas(transfers);
}

export function batchGas({ length }: readonly Transfer[]): bigint {
  return BATCH_GAS + EACH_GAS * BigInt(length);
}
