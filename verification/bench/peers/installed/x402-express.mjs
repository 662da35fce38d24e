/**
 * The official Express middleware as contestants, in JavaScript: it runs where `make bench` installs
 * it. FACILITATOR: `http` asks the facilitator at FACILITATOR_URL, `noop` approves in process,
 * `viem` checks signatures in process as the official facilitator does and settles nothing.
 */
import { HTTPFacilitatorClient } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware, x402ResourceServer } from '@x402/express';
import express from 'express';
import { pinoHttp } from 'pino-http';
import { Pool } from 'undici';
import { verifyTypedData } from 'viem/utils';

const { PORT, BACKEND_URL, FACILITATOR, FACILITATOR_URL, PAYEE, ASSET } = process.env;
const NETWORK = 'eip155:84532';
const CHAIN_ID = 84_532;
const TRANSACTION = `0x${'ab'.repeat(32)}`;
const SUPPORTED = { kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }], extensions: [], signers: {} };
const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
};

/** A facilitator in this process. */
function inProcess(verify) {
  return {
    verify,
    async settle({ payload }) {
      return { success: true, transaction: TRANSACTION, network: NETWORK, payer: payload.authorization.from };
    },
    getSupported: async () => SUPPORTED,
  };
}

async function verifiedByViem({ payload }, requirements) {
  const { authorization, signature } = payload;
  const { extra, asset } = requirements;
  const isValid = await verifyTypedData({
    address: authorization.from,
    domain: { name: extra.name, version: extra.version, chainId: CHAIN_ID, verifyingContract: asset },
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
    signature,
  });
  return { isValid, payer: authorization.from };
}

const facilitators = {
  http: () => new HTTPFacilitatorClient({ url: FACILITATOR_URL }),
  noop: () => inProcess(async ({ payload }) => ({ isValid: true, payer: payload.authorization.from })),
  viem: () => inProcess(verifiedByViem),
};

const server = new x402ResourceServer(facilitators[FACILITATOR]()).register(NETWORK, new ExactEvmScheme());
const price = { amount: '10000', asset: ASSET, extra: { name: 'USDC', version: '2' } };
const accepts = { scheme: 'exact', price, network: NETWORK, payTo: PAYEE, maxTimeoutSeconds: 120 };
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
