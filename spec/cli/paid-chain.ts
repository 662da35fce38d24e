import { encodeFunctionData, type Hex, type PrivateKeyAccount } from 'viem';
import { transferCall } from '../../src/payments/x402/evm/eip3009.ts';
import { replayKey } from '../../src/payments/x402/wire/proof.ts';
import type { Eip3009Authorization, Proof } from '../../src/payments/x402/wire/types.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { MULTICALL3_ABI, MULTICALL3_ADDRESS, TOKEN_ABI } from '../../tools/local-world/contracts.ts';
import {
  authorize,
  freshAccount,
  freshAddress,
  offerFor,
  sign,
  type Terms,
  termsFor,
} from '../payments/x402/signing.ts';
import { chainActors } from '../payments/x402/stage.ts';

/** The clock of this chain is moved: every authorization outlives that. Unix seconds. */
const FAR_AHEAD = '9999999999';
/** Between the first payment and the others. */
const HOUR_SECONDS = 3_600;
/** One transaction for four authorizations, one of which reverts. */
const BATCH_GAS = '0x1e8480';

/** A chain on which a payee was paid, with other transactions that look like payments. */
export interface PaidChain {
  readonly chain: Chain;
  readonly terms: Terms;
  readonly payer: string;
  /** What was paid: replay key to transaction, in the order of the chain. */
  readonly paid: ReadonlyMap<string, string>;
  /** The block before everything but the first payment, an hour later than that. */
  readonly halfway: number;
}

/** Everything that a payee's address sees on a chain, one after another. */
export async function startPaidChain(): Promise<PaidChain> {
  const chain = await startChain();
  try {
    const terms = termsFor(chain.token, chain.chainId);
    const account = freshAccount();
    await chain.mint(account.address, 10n ** 12n);
    const paid = new Map<string, string>();
    const halfway = await payAround(chain, terms, account, paid);
    return { chain, terms, payer: account.address, paid, halfway };
  } catch (error) {
    await chain.stop();
    throw error;
  }
}

async function payAround(
  chain: Chain,
  terms: Terms,
  account: PrivateKeyAccount,
  paid: Map<string, string>,
): Promise<number> {
  const proofOf = (changes: Partial<Eip3009Authorization> = {}): Promise<Proof> => proofBy(account, terms, changes);
  const actors = chainActors(chain, terms);
  const single = await proofOf();
  paid.set(single.payId, await actors.submit(single));

  const cancelled = await proofOf();
  await actors.cancel(account, cancelled);
  await actors.spendOnSelf(account, await proofOf());
  await actors.submit(await proofOf({ to: freshAddress() }));
  await actors.submit(await proofOf({ value: '0' }));
  const transfer = { abi: TOKEN_ABI, functionName: 'transfer', args: [terms.payTo as Hex, 10_000n] } as const;
  await chain.fundGas(account.address);
  await chain.send(account.address, chain.token.address, encodeFunctionData(transfer));

  await chain.request('evm_increaseTime', [HOUR_SECONDS]);
  const halfway = Number(await chain.request('eth_blockNumber', []));
  // A settlement lane puts many into one transaction; one of them has another payee, one fails.
  const batch = [await proofOf(), await proofOf({ to: freshAddress() }), cancelled, await proofOf({ value: '5000' })];
  const calls = batch.map(({ payload: { payload } }) => ({
    target: chain.token.address,
    allowFailure: true,
    callData: transferCall(payload.authorization, payload.signature, 'account') as Hex,
  }));
  const aggregate = encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3', args: [calls] });
  const lane = { from: freshAddress(), to: MULTICALL3_ADDRESS, data: aggregate, gas: BATCH_GAS };
  await chain.fundGas(lane.from);
  const together = String(await chain.request('eth_sendTransaction', [lane]));
  await chain.request('evm_mine', []);
  for (const proof of [batch[0], batch[3]]) paid.set(proof?.payId ?? '', together);
  // Prices that many resources have, and that none has.
  for (const value of ['1000', '1234567']) {
    const proof = await proofOf({ value });
    paid.set(proof.payId, await actors.submit(proof));
  }
  const last = await proofOf();
  paid.set(last.payId, await actors.submit(last));
  return halfway;
}

async function proofBy(
  account: PrivateKeyAccount,
  terms: Terms,
  changes: Partial<Eip3009Authorization>,
): Promise<Proof> {
  const accepted = offerFor(terms);
  const authorization = authorize(account.address, accepted, { validBefore: FAR_AHEAD, ...changes });
  const signature = await sign(account, authorization, terms);
  const { chainId, asset } = terms;
  const payId = replayKey({ chainId, asset, ...authorization });
  return { payId, payload: { x402Version: 2, accepted, payload: { signature, authorization } }, signedBy: 'account' };
}
