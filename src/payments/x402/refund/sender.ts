/** The account that sends refunds to the chain and pays their gas. */

import { getTransactionCount, sendRawTransaction } from 'viem/actions';
import { hexToBigInt } from 'viem/utils';
import { clientOver, type Rpc, readHead } from '../chain/node.ts';
import { type SigningKey, signTransaction } from '../evm/account.ts';
import { lowerHex } from '../evm/eip3009.ts';
import { isKnown, watchFees } from '../local/relayer.ts';

/** Gas limit, percent of the node's estimate: balances of other holders may change meanwhile. */
const GAS_PERCENT = 125n;

/** A signed transaction: its hash is known before anything is sent. */
export interface SignedRefund {
  readonly hash: string;
  readonly raw: string;
}

/** Signs calls of the asset and sends them. Sends nothing that was not signed before. */
export interface RefundSender {
  /** Lower case 0x-hex. */
  readonly address: string;
  /** @throws RpcRefusal where the asset would refuse the call; other errors of the node */
  sign(data: string): Promise<SignedRefund>;
  /**
   * Resolves when the node has the transaction, also if it had it before.
   * @throws RpcRefusal where the node does not take it; other errors where that is not known
   */
  send(signed: SignedRefund): Promise<void>;
}

/** @param key pays the gas; any account can send the authorization that the payee signed */
export function createRefundSender(
  rpc: Rpc,
  { chainId, asset }: { readonly chainId: number; readonly asset: string },
  key: SigningKey,
): RefundSender {
  const client = clientOver(rpc.call);
  const fees = watchFees({ client, head: () => readHead(client) });
  const address = lowerHex(key.address);
  return {
    address,
    async sign(data) {
      const call = { from: address, to: lowerHex(asset), data: lowerHex(data) };
      const estimated = client.request({ method: 'eth_estimateGas', params: [call] });
      // A transaction of this account that still waits keeps its number.
      const waiting = getTransactionCount(client, { address, blockTag: 'pending' });
      const [gas, number, offered] = await Promise.all([estimated, waiting, fees.current()]);
      const limit = (hexToBigInt(gas) * GAS_PERCENT) / 100n;
      return signTransaction({ chainId, number, ...offered, gas: limit, to: asset, data }, key);
    },
    async send({ raw }) {
      try {
        await sendRawTransaction(client, { serializedTransaction: lowerHex(raw) });
      } catch (error) {
        if (!isKnown(error)) throw error;
      }
    },
  };
}
