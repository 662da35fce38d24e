/** A gateway that sells for three tokens on two chains, and buyers who own all of them. */

import assert from 'node:assert/strict';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { encodeDeployData, getContractAddress, type Hex } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import type { Purchase } from '../../src/mandates/ap2/purchase.ts';
import { type Chain, type ChainAccess, connectChain, startChain } from '../../tools/local-world/chain.ts';
import { CONTRACTS } from '../../tools/local-world/contracts.ts';
import type { Mint } from '../support/ap2/mint.ts';
import type { ConfigObject } from '../support/config.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { startSampleBackend } from '../support/sample-backend.ts';
import { quoteOf } from '../support/testbed.ts';
import { now } from './mandate-seller.ts';

/** The chain of the second and the third entry; the first has that of development chains. */
export const FAR_CHAIN_ID = 1_337;
/** `accepts` of `market_report`, in order: the network, the name of the token, base units. */
export const OFFERS = [
  ['eip155:31337', 'Test USD', 10_000n],
  ['eip155:1337', 'Test USD', 10_000n],
  ['eip155:1337', 'Euro Coin', 9_000n],
] as const;
/** Its price. */
export const PRICING = { amount: undefined, currency: undefined, amounts: { TUSD: '0.01', EURC: '0.009' } };
/** What is sold unless a test names another resource. */
export const RESOURCE = 'market_report';
export const CITY = { city: 'Berlin' };
/** What a buyer owns of each token, base units. */
const FUNDS_UNITS = 1_000_000n;

/** One offer: its network, its token and its payee. */
interface Place {
  readonly chain: ChainAccess;
  readonly payTo: string;
}

/** The body of a 402. */
export interface Asked {
  readonly payment: Readonly<Record<'network' | 'asset' | 'amount' | 'currency' | 'destination', string>> & {
    readonly accepts: readonly PaymentRequirements[];
    readonly envelope: PaymentRequired;
  };
  readonly authorization?: { readonly required: readonly [Demand] };
}

/** A checkout, and its alternatives. */
interface Demand {
  readonly checkoutJwt: string;
  readonly alternatives?: readonly { readonly network: string; readonly asset: string; readonly checkoutJwt: string }[];
}

/** A buyer with one key on both chains. */
export interface FarBuyer {
  readonly account: PrivateKeyAccount;
  /** A PAYMENT-SIGNATURE of the official client for one offer of a 402. */
  pay(document: PaymentRequired, at: number): Promise<string>;
  /** The official client, which signs for both networks until it is told otherwise. */
  client(...selector: ConstructorParameters<typeof x402Client>): x402Client;
  /** Runs what must move exactly these base units of each token from the buyer to the payees. */
  moves(units: readonly bigint[], work: () => Promise<unknown>): Promise<void>;
}

/** The stand: chains, facilitator, gateway. */
export interface TwoChains {
  readonly gateway: TestGateway;
  /** The facilitator of both offers on the far chain, which is the official one, with its calls. */
  readonly facilitator: HostileFacilitator;
  /** Its scripts. */
  readonly relayed: Parameters<HostileFacilitator['script']>[0];
  readonly places: readonly Place[];
  /** `payments.x402` with changes by entry. */
  payments(...changes: readonly ConfigObject[]): ConfigObject;
  buyer(): Promise<FarBuyer>;
  /** The 402 of a resource. */
  ask(resource?: string, input?: object): Promise<Asked>;
}

/** Opens everything on `ends`. `overrides`: of the configuration. */
export async function openTwoChains(
  ends: AsyncDisposableStack,
  { overrides = {}, ...given }: Options = {},
): Promise<TwoChains> {
  const [near, far, backend] = await Promise.all([
    given.near ?? startChain(),
    given.far ?? startChain(0, undefined, FAR_CHAIN_ID),
    startSampleBackend(),
  ]);
  for (const { stop } of [near, far, backend]) ends.defer(stop);
  const official = ends.adopt(await startFacilitator(far), ({ stop }) => stop());
  const facilitator = ends.adopt(await startHostileFacilitator('eip155:1337'), ({ stop }) => stop());
  const relay = relayTo(official.url);
  const relayed = { verify: relay, settle: relay, supported: relay };
  facilitator.script(relayed);
  const euro = await deployEuro(far);
  const remote = { mode: 'remote', url: facilitator.url, auth: { type: 'none' } } as const;
  const places = [near, far, euro].map((chain) => ({
    chain,
    payTo: privateKeyToAccount(generatePrivateKey()).address,
  }));
  const entries = places.map(({ chain: { chainId, token, rpcUrl }, payTo }, at): ConfigObject => {
    const { address: asset, name: assetName, version: assetVersion, decimals: assetDecimals } = token;
    const facilitator = at === 0 ? { mode: 'local', privateKey: near.relayerKey } : remote;
    return {
      ...{ network: `eip155:${chainId}`, asset, assetName, assetVersion, assetDecimals, payTo, facilitator },
      ...{ currency: at === 2 ? 'EURC' : 'TUSD', payToExclusive: true, rpcUrl: given.rpcUrls?.[at] ?? rpcUrl },
    };
  });
  const payments = (...changes: readonly ConfigObject[]): ConfigObject => ({
    x402: entries.map((entry, at) => ({ ...entry, ...changes[at] })),
  });
  const { resources, ...others } = overrides;
  const gateway = await openGateway({
    ...{ chain: near, backendUrl: backend.url, facilitator: { mode: 'local' } },
    overrides: {
      protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
      ...{ ...others, payments: payments() },
      resources: { ...(resources as ConfigObject), market_report: { pricing: PRICING } },
    },
  });
  ends.defer(() => gateway.close());
  return {
    ...{ gateway, facilitator, relayed, places, payments },
    buyer: () => createFarBuyer(places),
    ask: async (resource = RESOURCE, input = CITY) =>
      (await quoteOf(gateway, resource, input)).body as unknown as Asked,
  };
}

interface Options {
  readonly overrides?: ConfigObject;
  /** In the place of the chains that are started here. */
  readonly near?: Chain;
  readonly far?: Chain;
  /** The nodes of the entries, where these are not the chains themselves. */
  readonly rpcUrls?: readonly (string | undefined)[];
}

async function deployEuro(far: Chain): Promise<ChainAccess> {
  const { address: deployer } = privateKeyToAccount(generatePrivateKey());
  const { abi, bytecode } = CONTRACTS.contracts.Eip3009Token;
  await far.fundGas(deployer);
  await far.send(deployer, undefined, encodeDeployData({ abi, bytecode, args: ['Euro Coin', '2'] }));
  const address = getContractAddress({ from: deployer, nonce: 0n }) as Hex;
  const token = { address, name: 'Euro Coin', version: '2', decimals: 6 } as const;
  return { ...connectChain(far.rpcUrl, token), chainId: far.chainId };
}

async function createFarBuyer(places: readonly Place[]): Promise<FarBuyer> {
  const account = privateKeyToAccount(generatePrivateKey());
  for (const { chain } of places) await chain.mint(account.address, FUNDS_UNITS);
  const client: FarBuyer['client'] = (...selector) =>
    new x402Client(...selector).register('eip155:*', new ExactEvmScheme(account)).setSpendControls(false);
  /** What the buyer has spent of each token, and what each payee has earned. */
  const totals = () =>
    Promise.all([
      ...places.map(async ({ chain }) => FUNDS_UNITS - (await chain.balanceOf(account.address))),
      ...places.map(({ chain, payTo }) => chain.balanceOf(payTo)),
    ]);
  return {
    ...{ account, client },
    async pay(document, at) {
      const select = () => document.accepts[at] ?? assert.fail(`no offer ${at}`);
      return encodePaymentSignatureHeader(await client(select).createPaymentPayload(document));
    },
    async moves(units, work) {
      const before = await totals();
      await work();
      const moved = (await totals()).map((total, at) => total - (before[at] ?? 0n));
      assert.deepEqual(moved, [...units, ...units], 'spent and earned');
    },
  };
}

/** Base units of each token, where one offer is bought. */
export function priceOf(at: number): readonly bigint[] {
  return OFFERS.map(([, , units], place) => (place === at ? units : 0n));
}

/** A mandate for offer `at` of a 402 for `echo`, made of the checkout of that offer. */
export function mandateFor(
  { gateway, mint }: Pick<TwoChains, 'gateway'> & { readonly mint: Mint },
  buyer: FarBuyer,
  input: Purchase['input'],
  { authorization, payment }: Asked,
  at: number,
): string {
  const [demand] = authorization?.required ?? assert.fail();
  const { network, asset, payTo } = payment.accepts[at] ?? assert.fail();
  const other = demand.alternatives?.find((one) => one.network === network && one.asset === asset);
  const { checkoutJwt } = at === 0 ? demand : (other ?? assert.fail(`no checkout for offer ${at}`));
  const purchase: Purchase = {
    ...{ resourceId: 'echo', title: 'Echo', input, price: { amount: '0.001', currency: 'TUSD' } },
    payment: { method: 'x402', network, asset, payTo, payer: buyer.account.address.toLowerCase(), nonce: undefined },
  };
  const profile = gateway.config.authorization.ap2?.profile ?? assert.fail();
  return mint.autonomous({ now: now(), profile, checkoutJwt, purchase, payment: true }).header;
}
