/**
 * The official middleware with the official facilitator in its process, which sends transactions
 * through viem with its nonce manager. RPC_URL, RELAYER_KEY, ASSET, ASSET_NAME, PAYEE.
 */
import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware, x402ResourceServer } from '@x402/express';
import express from 'express';
import { pinoHttp } from 'pino-http';
import { Pool } from 'undici';
import { createWalletClient, defineChain, http, publicActions } from 'viem';
import { nonceManager, privateKeyToAccount } from 'viem/accounts';

const { PORT, BACKEND_URL, RPC_URL, RELAYER_KEY, ASSET, ASSET_NAME, PAYEE } = process.env;
const CHAIN_ID = 31_337;
const NETWORK = `eip155:${CHAIN_ID}`;
/** Between two looks at the head, milliseconds; viem's own 4 s would be no comparison. */
const POLL_MS = 25;
const CONFIRMATION_TIMEOUT_MS = 20_000;

const chain = defineChain({
  id: CHAIN_ID,
  name: 'local',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [RPC_URL] } },
});
const account = privateKeyToAccount(RELAYER_KEY, { nonceManager });
const client = createWalletClient({ account, chain, transport: http(RPC_URL), pollingInterval: POLL_MS }).extend(
  publicActions,
);
const signer = toFacilitatorEvmSigner(
  {
    address: account.address,
    getCode: (args) => client.getCode(args),
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) => client.verifyTypedData(args),
    writeContract: (args) => client.writeContract(args),
    sendTransaction: (args) => client.sendTransaction(args),
    waitForTransactionReceipt: (args) => client.waitForTransactionReceipt(args),
  },
  { confirmationTimeoutMs: CONFIRMATION_TIMEOUT_MS },
);
const facilitator = new x402Facilitator().register(NETWORK, new FacilitatorScheme(signer));
const server = new x402ResourceServer({
  verify: (payload, requirements) => facilitator.verify(payload, requirements),
  settle: (payload, requirements) => facilitator.settle(payload, requirements),
  getSupported: async () => facilitator.getSupported(),
}).register(NETWORK, new ExactEvmScheme());
const price = { amount: '10000', asset: ASSET, extra: { name: ASSET_NAME, version: '2' } };
const accepts = { scheme: 'exact', price, network: NETWORK, payTo: PAYEE, maxTimeoutSeconds: 300 };
const pool = new Pool(BACKEND_URL, { connections: 64, pipelining: 1 });

express()
  .use(pinoHttp())
  .get('/', (_request, response) => void response.json({}))
  .use(
    paymentMiddleware({ 'POST /api/resources/quoted/invoke': { accepts, description: 'Prices and volumes' } }, server),
  )
  .use(express.json())
  .post('/api/resources/quoted/invoke', async (request, response) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const body = JSON.stringify(request.body);
    const answer = await pool.request({ method: 'POST', path: '/report', headers, body });
    response.json(await answer.body.json());
  })
  .listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
