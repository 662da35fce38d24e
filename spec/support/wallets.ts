/** Buyers whose wallets are contracts. */

import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { type Address, concat, encodeDeployData, getContractAddress, type Hex, numberToHex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { serializeErc6492Signature } from 'viem/utils';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { CONTRACTS } from '../../tools/local-world/contracts.ts';

/**
 * The factory that anvil has at its known address: salt and creation code in, a contract by
 * CREATE2.
 */
export const WALLET_FACTORY: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C';

/** How a wallet signs: as deployed, or with the wrapper that holds its deployment (ERC-6492). */
export type WalletSignature = 'plain' | 'wrapped';

/** A buyer whose payer is a contract, with the official client. */
export interface WalletBuyer {
  readonly address: Address;
  /** The signer of the wallet. */
  readonly owner: PrivateKeyAccount;
  /** Deploys the contract at its address. */
  deploy(): Promise<void>;
  /** Signs a payment for a PaymentRequired document and gives the PAYMENT-SIGNATURE header. */
  pay(paymentRequired: unknown, signature?: WalletSignature): Promise<string>;
}

/** A fresh wallet, not deployed, that owns `units` of the token. */
export async function createWalletBuyer(chain: ChainAccess, units = 10_000_000n): Promise<WalletBuyer> {
  const owner = privateKeyToAccount(generatePrivateKey());
  const { abi, bytecode } = CONTRACTS.contracts.ContractWallet;
  const creation = encodeDeployData({ abi, bytecode, args: [owner.address] });
  const salt = numberToHex(1n, { size: 32 });
  const address = getContractAddress({ opcode: 'CREATE2', from: WALLET_FACTORY, salt, bytecode: creation });
  const call = concat([salt, creation]);
  await chain.mint(address, units);

  const clientThat = (wrap: (signature: Hex) => Hex): x402Client => {
    const signTypedData = async (document: Parameters<PrivateKeyAccount['signTypedData']>[0]): Promise<Hex> =>
      wrap(await owner.signTypedData(document));
    const client = new x402Client().register(
      'eip155:*',
      // The package keeps the typed data loose on purpose, viem infers it from literals: the same
      // object for both.
      new ExactEvmScheme({ address, signTypedData: signTypedData as PrivateKeyAccount['signTypedData'] }),
    );
    // The client's default limits know published stablecoins only and would refuse the test token.
    client.setSpendControls(false);
    return client;
  };
  const clients = {
    plain: clientThat((signature) => signature),
    wrapped: clientThat((signature) => serializeErc6492Signature({ address: WALLET_FACTORY, data: call, signature })),
  };
  return {
    address,
    owner,
    async deploy() {
      await chain.fundGas(owner.address);
      await chain.send(owner.address, WALLET_FACTORY, call);
    },
    pay: async (paymentRequired, signature = 'plain') =>
      encodePaymentSignatureHeader(await clients[signature].createPaymentPayload(paymentRequired as PaymentRequired)),
  };
}
