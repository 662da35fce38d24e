import { encodeFunctionData, type Hex, parseSignature } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { transferCall } from '../../../../src/payments/x402/evm/calldata.ts';
import type { Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { ChainAccess } from '../../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../../tools/local-world/contracts.ts';
import { freshAccount, genuineProof, PRICE_UNITS, sign, type Terms } from '../signing.ts';

/** What payers and third parties do on a chain without the gateway. */
export interface ChainActors {
  /** A payer that has exactly the price, and its proof. */
  buyer(units?: bigint): Promise<{ readonly account: PrivateKeyAccount; readonly proof: Proof }>;
  /** A third party that has the proof submits it; resolves to the transaction. */
  submit(proof: Proof): Promise<Hex>;
  /** The same, not mined before `mine`; resolves to the transaction. */
  broadcast(proof: Proof): Promise<Hex>;
  /** Mines what was broadcast. */
  mine(): Promise<void>;
  /** The payer cancels the authorization. */
  cancel(account: PrivateKeyAccount, proof: Proof): Promise<void>;
  /** The payer spends the same nonce on a transfer to itself. */
  spendOnSelf(account: PrivateKeyAccount, proof: Proof): Promise<void>;
}

/** Given, because an estimate fails while another transaction with the same authorization waits. */
const UNMINED_GAS = '0x30d40';

export function chainActors(chain: ChainAccess, terms: Terms): ChainActors {
  const stranger = async ({ payload, signedBy }: Proof) => {
    const from = freshAccount().address;
    const { authorization, signature } = payload.payload;
    await chain.fundGas(from);
    return { from, to: chain.token.address, data: transferCall(authorization, signature, signedBy) as Hex };
  };
  const submit = async (proof: Proof): Promise<Hex> => {
    const { from, to, data } = await stranger(proof);
    return chain.send(from, to, data);
  };
  return {
    submit,
    async broadcast(proof) {
      const transaction = { ...(await stranger(proof)), gas: UNMINED_GAS };
      await chain.request('evm_setAutomine', [false]);
      return (await chain.request('eth_sendTransaction', [transaction])) as Hex;
    },
    async mine() {
      await chain.request('evm_mine', []);
      await chain.request('evm_setAutomine', [true]);
    },
    async buyer(units = PRICE_UNITS) {
      const account = freshAccount();
      if (units > 0n) await chain.mint(account.address, units);
      return { account, proof: await genuineProof(account, terms) };
    },
    async cancel(account, proof) {
      const nonce = proof.payload.payload.authorization.nonce as Hex;
      const { r, s, v } = parseSignature(await signCancellation(account, nonce, terms));
      const args = [account.address, nonce, Number(v), r, s] as const;
      const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'cancelAuthorization', args });
      await chain.fundGas(account.address);
      await chain.send(account.address, chain.token.address, call);
    },
    async spendOnSelf(account, proof) {
      const authorization = { ...proof.payload.payload.authorization, to: account.address };
      const signature = await sign(account, authorization, terms);
      await submit({ ...proof, payload: { ...proof.payload, payload: { signature, authorization } } });
    },
  };
}

function signCancellation(account: PrivateKeyAccount, nonce: Hex, terms: Terms): Promise<Hex> {
  return account.signTypedData({
    domain: {
      name: terms.assetName,
      version: terms.assetVersion,
      chainId: terms.chainId,
      verifyingContract: terms.asset as Hex,
    },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  });
}
