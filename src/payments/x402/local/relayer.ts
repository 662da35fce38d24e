/** The relayer: the account that signs and broadcasts transfers, one at a time. */

import type { Client } from 'viem';
import { getBalance, getTransactionCount, sendRawTransaction } from 'viem/actions';
import { hexToBigInt, keccak256 } from 'viem/utils';
import type { SignedTransaction } from '../../rail.ts';
import { clientOver, readHead } from '../chain/client.ts';
import { type Rpc, RpcRefusal } from '../chain/rpc.ts';
import { lowerHex } from '../evm/abi-words.ts';
import type { RelayerFunds } from './relayer-funds.ts';
import { createSentTransactions, type Exclusion, exclusionOf, isKnown } from './sent-transactions.ts';
import { turns } from './turns.ts';

/** Offered to the block producer when the node suggests nothing, wei. */
const DEFAULT_TIP_WEI = 1_000_000_000n;
/** The base fee may double (six full blocks) before a transaction is left out. */
const BASE_FEE_FACTOR = 2n;

/** A call that the relayer pays gas for. */
interface RelayedCall {
  readonly to: string;
  readonly data: string;
  /** Gas limit. */
  readonly gas: bigint;
}

/**
 * `unsent`: certainly nothing left; `sent`: the node took it; `unclear`: the node may or may not
 * have it; `excluded`: the node answered readably that it keeps nothing of it, and its number goes
 * to the next transaction.
 */
export type Sending =
  | { readonly kind: 'unsent'; readonly cause: unknown }
  | { readonly kind: 'sent'; readonly hash: string }
  | {
      readonly kind: 'excluded';
      readonly hash: string;
      readonly number: number;
      readonly exclusion: Exclusion;
      readonly cause: unknown;
    }
  | { readonly kind: 'unclear'; readonly hash: string; readonly cause: unknown };

/** An account for gas only: authorizations name their payee, so it cannot redirect money. */
export interface Relayer {
  readonly address: string;
  /**
   * Signs, writes ahead, broadcasts. A number is taken only when all transactions before it are
   * out, and those that the node has lost are out again, so no gap can hold the following ones up.
   */
  send(call: RelayedCall, writeAhead: (transaction: SignedTransaction) => Promise<void>): Promise<Sending>;
  /** Its balance and its next gas price. @throws when the node does not answer */
  funds(): Promise<RelayerFunds>;
}

/** @param privateKey 32 bytes as 0x-hex */
export async function createRelayer(rpc: Rpc, chainId: number, privateKey: string): Promise<Relayer> {
  // Loaded only where transactions are signed: the import takes a tenth of a second.
  const { privateKeyToAccount } = await import('viem/accounts');
  const account = privateKeyToAccount(lowerHex(privateKey));
  const { address } = account;
  const client = clientOver(rpc.call);
  const inTurn = turns();
  const broadcast = async (raw: string): Promise<void> =>
    void (await sendRawTransaction(client, { serializedTransaction: lowerHex(raw) }));
  const sent = createSentTransactions(broadcast);

  const sign = async (call: RelayedCall): Promise<SignedTransaction & { readonly number: number }> => {
    const [pending, fees] = await Promise.all([
      getTransactionCount(client, { address, blockTag: 'pending' }),
      currentFees(client),
    ]);
    const number = await sent.nextNumber(pending);
    const raw = await account.signTransaction({
      type: 'eip1559',
      chainId,
      nonce: number,
      to: lowerHex(call.to),
      data: lowerHex(call.data),
      gas: call.gas,
      ...fees,
    });
    return { number, raw, hash: keccak256(raw) };
  };

  return {
    address,
    send: (call, writeAhead) =>
      inTurn(async () => {
        let signed: Awaited<ReturnType<typeof sign>>;
        try {
          signed = await sign(call);
          await writeAhead({ hash: signed.hash, raw: signed.raw });
        } catch (cause) {
          return { kind: 'unsent', cause };
        }
        const { hash, raw, number } = signed;
        try {
          await broadcast(raw);
        } catch (cause) {
          const exclusion = exclusionOf(cause);
          if (exclusion !== undefined) return { kind: 'excluded', hash, number, exclusion, cause };
          // Not counted: the next count of the node shows whether it has this transaction.
          if (!isKnown(cause)) return { kind: 'unclear', hash, cause };
        }
        sent.add(number, raw);
        return { kind: 'sent', hash };
      }),
    async funds() {
      const [balance, { maxFeePerGas }] = await Promise.all([getBalance(client, { address }), currentFees(client)]);
      return { balance, maxFeePerGas };
    },
  };
}

async function currentFees(
  client: Client,
): Promise<{ readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }> {
  const [{ baseFee }, maxPriorityFeePerGas] = await Promise.all([readHead(client), suggestedTip(client)]);
  return { maxPriorityFeePerGas, maxFeePerGas: BASE_FEE_FACTOR * baseFee + maxPriorityFeePerGas };
}

/** Not every node has this method. */
async function suggestedTip(client: Client): Promise<bigint> {
  try {
    return hexToBigInt(await client.request({ method: 'eth_maxPriorityFeePerGas' }));
  } catch (error) {
    if (error instanceof RpcRefusal) return DEFAULT_TIP_WEI;
    throw error;
  }
}
