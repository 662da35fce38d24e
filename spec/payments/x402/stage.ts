import { encodeFunctionData, type Hex, parseSignature } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { SignedTransaction } from '../../../src/payments/rail.ts';
import { type Chain, createChain } from '../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../src/payments/x402/chain/node.ts';
import { transferCall } from '../../../src/payments/x402/evm/eip3009.ts';
import { createLocalRail } from '../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../../../src/payments/x402/wire/types.ts';
import { type ChainAccess, type Chain as LocalChain, startChain } from '../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { type HttpServer, serveHttp } from '../../support/http-server.ts';
import { freshAccount, genuineProof, offerFor, PRICE_UNITS, sign, type Terms, termsFor } from './signing.ts';

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

/**
 * `pass`: the call is unchanged; `lose`: the node gets it and the answer breaks off; `reset`: the
 * connection breaks off before; `fail`: no node behind the balancer; `empty`: an empty answer;
 * `unfunded`: the node gets it and answers that its sender cannot pay the gas; `limit`, `busy`,
 * `broken`: readable refusals of a node that has not worked on it.
 */
export type Fault = 'pass' | 'lose' | 'reset' | 'fail' | 'empty' | 'unfunded' | keyof typeof REFUSALS;

const REFUSALS = {
  limit: { status: 429, error: { code: -32_005, message: 'rate limited' } },
  busy: { status: 200, error: { code: -32_016, message: 'over rate limit' } },
  broken: { status: 200, error: { code: -32_603, message: 'internal error' } },
} as const;

const UNFUNDED = { code: -32_000, message: 'insufficient funds for gas * price + value' };

/** Runs `use` with a connection through a chain node with faults. */
export async function throughFaultyNode<T>(
  upstream: string,
  fault: (method: string) => Fault,
  use: (rpc: Rpc) => Promise<T>,
): Promise<T> {
  const node = await startFaultyNode(upstream, fault);
  const rpc = createRpc(node.url);
  try {
    return await use(rpc);
  } finally {
    await rpc.close();
    await node.stop();
  }
}

/** A chain node with faults, between its callers and the real one. */
export async function startFaultyNode(upstream: string, fault: (method: string) => Fault): Promise<HttpServer> {
  return serveHttp(async ({ response, body: bytes }) => {
    const body = bytes.toString('utf8');
    const { method, id } = JSON.parse(body) as { readonly method: string; readonly id: number };
    const headers = { 'content-type': 'application/json' };
    const chosen = fault(method);
    if (chosen === 'reset') response.socket?.resetAndDestroy();
    else if (chosen === 'limit' || chosen === 'busy' || chosen === 'broken') {
      const { status, error } = REFUSALS[chosen];
      response.writeHead(status, headers).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    } else if (chosen === 'fail') response.writeHead(503).end('<html>no upstream</html>');
    else if (chosen === 'empty')
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result: [] }));
    else {
      const answer = await (await fetch(upstream, { method: 'POST', headers, body })).text();
      if (chosen === 'lose') response.socket?.resetAndDestroy();
      else if (chosen === 'unfunded')
        response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, error: UNFUNDED }));
      else response.writeHead(200, headers).end(answer);
    }
  });
}

/** A chain of its own with everything that reads it or settles on it. */
export interface Stage {
  readonly local: LocalChain;
  readonly rpc: Rpc;
  readonly chain: Chain;
  readonly terms: Terms;
  readonly offer: ReturnType<typeof offerFor>;
  readonly actors: ChainActors;
  readonly rail: PaymentRail;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const local = await startChain();
  const terms = termsFor(local.token, local.chainId);
  const rpc = createRpc(local.rpcUrl);
  const chain = createChain(rpc);
  return {
    local,
    rpc,
    chain,
    terms,
    offer: offerFor(terms),
    actors: chainActors(local, terms),
    rail: await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey }),
    async close() {
      await rpc.close();
      await local.stop();
    },
  };
}

/** Settles and keeps what was written ahead. */
export async function settleThrough(
  rail: PaymentRail,
  proof: Proof,
  offer: PaymentRequirements,
  history?: { readonly sentBefore: boolean },
) {
  const written: SignedTransaction[] = [];
  const outcome = await rail.settle(proof, offer, async (signed) => void written.push(signed), history);
  return { outcome, written };
}
