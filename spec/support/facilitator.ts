/** The official x402 facilitator over HTTP, on the local chain. */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { x402Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import express from 'express';
import {
  createWalletClient,
  defineChain,
  http,
  nonceManager,
  publicActions,
  type VerifyTypedDataParameters,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';

/** A remote facilitator: POST /verify and /settle, GET /supported. */
export interface Facilitator {
  readonly url: string;
  stop(): Promise<void>;
}

interface FacilitatorRequest {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/** Between two looks for a receipt, milliseconds; anvil mines at once. */
const RECEIPT_POLL_MS = 25;
const CONFIRMATION_TIMEOUT_MS = 20_000;

/**
 * The official facilitator over HTTP, with a fresh key that holds gas. Settles on the chain it is
 * given. `deploysBy`: the one factory through which it deploys wallets before they pay (ERC-6492).
 */
export async function startFacilitator(
  chain: ChainAccess,
  { deploysBy }: { readonly deploysBy?: string } = {},
): Promise<Facilitator> {
  const account = privateKeyToAccount(generatePrivateKey(), { nonceManager });
  await chain.fundGas(account.address);
  const official = new x402Facilitator().register(
    `eip155:${chain.chainId}`,
    new ExactEvmScheme(signer(chain, account), deploysBy === undefined ? {} : { eip6492AllowedFactories: [deploysBy] }),
  );

  const app = express();
  app.disable('x-powered-by');
  app.use(express.json());
  app.get('/supported', (_request, response) => {
    response.json(official.getSupported());
  });
  app.post('/verify', async (request, response) => {
    const { paymentPayload, paymentRequirements } = request.body as FacilitatorRequest;
    response.json(await official.verify(paymentPayload, paymentRequirements));
  });
  app.post('/settle', async (request, response) => {
    const { paymentPayload, paymentRequirements } = request.body as FacilitatorRequest;
    response.json(await official.settle(paymentPayload, paymentRequirements));
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function signer(chain: ChainAccess, account: ReturnType<typeof privateKeyToAccount>) {
  const network = defineChain({
    id: chain.chainId,
    name: 'local',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [chain.rpcUrl] } },
  });
  const client = createWalletClient({
    account,
    chain: network,
    transport: http(chain.rpcUrl),
    pollingInterval: RECEIPT_POLL_MS,
  }).extend(publicActions);
  // The nonce manager gives two sends that overlap one nonce now and then, and the node refuses the
  // second.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(send: () => Promise<T>): Promise<T> => {
    const mine = last.then(send);
    last = mine.catch(() => undefined);
    return mine;
  };
  return toFacilitatorEvmSigner(
    {
      address: account.address,
      getCode: (args) => client.getCode(args),
      readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
      // The package keeps the typed data loose on purpose, viem infers it from literals: the same
      // object for both.
      verifyTypedData: (args) => client.verifyTypedData(args as VerifyTypedDataParameters),
      writeContract: (args) => inTurn(() => client.writeContract(args)),
      sendTransaction: (args) => inTurn(() => client.sendTransaction(args)),
      waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
    },
    { confirmationTimeoutMs: CONFIRMATION_TIMEOUT_MS },
  );
}
