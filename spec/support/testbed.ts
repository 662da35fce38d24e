/** The fixture of most end-to-end specs: chain, backend, gateway in this process, buyer. */

import assert from 'node:assert/strict';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from './buyer.ts';
import { type Facilitator, startFacilitator } from './facilitator.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from './gateway.ts';
import { type HostileFacilitator, startHostileFacilitator } from './hostile-facilitator.ts';
import { type SampleBackend, startSampleBackend } from './sample-backend.ts';

/** What runs, and what a buyer does with it. */
export interface Testbed {
  readonly chain: Chain;
  readonly backend: SampleBackend;
  readonly gateway: TestGateway;
  readonly buyer: Buyer;
  /** The 402 of a resource for this input, as an object. */
  quote(resourceId: string, input?: unknown): Promise<Quote>;
  /** A fresh PAYMENT-SIGNATURE for a resource and input. */
  proof(resourceId: string, input?: unknown): Promise<string>;
  /** Units the payee has. */
  income(): Promise<bigint>;
  close(): Promise<void>;
}

/** A PaymentRequired document, as far as specs read it. */
interface Envelope {
  readonly extensions?: Readonly<Record<string, { readonly info: { readonly token: string } }>>;
}

/** A 402 and its body. */
export interface Quote {
  readonly response: Response;
  readonly body: {
    readonly requestId: string;
    readonly payment: { readonly envelope: Envelope; readonly accepts: readonly Record<string, unknown>[] };
    readonly error?: { readonly code: string; readonly reason: string; readonly retryable: boolean };
  };
}

/** Opens everything; `parts` may name another facilitator, storage or overrides. */
export async function openTestbed(
  parts:
    | Partial<Omit<TestGatewayParts, 'chain' | 'backendUrl'>>
    | ((chain: Chain) => Promise<Partial<TestGatewayParts>>) = {},
): Promise<Testbed> {
  const [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
  const given = typeof parts === 'function' ? await parts(chain) : parts;
  const gateway = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, ...given });
  const buyer = await createBuyer(chain);
  const quote = (resourceId: string, input: unknown = {}): Promise<Quote> => quoteOf(gateway, resourceId, input);
  return {
    chain,
    backend,
    gateway,
    buyer,
    quote,
    proof: (resourceId, input) => proofFor(gateway, buyer, resourceId, input),
    income: () => chain.balanceOf(gateway.config.x402?.payTo ?? ''),
    async close() {
      await gateway.close();
      await Promise.all([chain.stop(), backend.stop()]);
    },
  };
}

/** The 402 of a resource for this input. */
export async function quoteOf(
  gateway: Pick<TestGateway, 'invoke'>,
  resourceId: string,
  input: unknown = {},
): Promise<Quote> {
  const response = await gateway.invoke(resourceId, input);
  assert.equal(response.status, 402, `${resourceId} has a price`);
  return { response, body: (await response.json()) as Quote['body'] };
}

/** A fresh PAYMENT-SIGNATURE of a buyer for a resource and input. */
export async function proofFor(
  gateway: Pick<TestGateway, 'invoke'>,
  buyer: Pick<Buyer, 'pay'>,
  resourceId: string,
  input?: unknown,
): Promise<string> {
  return buyer.pay((await quoteOf(gateway, resourceId, input)).body.payment.envelope);
}

/** A gateway that asks a scripted facilitator, and an official one on the same chain. */
export interface ScriptedTestbed {
  readonly testbed: Testbed;
  readonly hostile: HostileFacilitator;
  readonly official: Facilitator;
  close(): Promise<void>;
}

/** Opens everything; scripts may relay to the official facilitator. */
export async function openScriptedTestbed(): Promise<ScriptedTestbed> {
  const hostile = await startHostileFacilitator('eip155:31337');
  const testbed = await openTestbed({ facilitator: { mode: 'remote', url: hostile.url } });
  const official = await startFacilitator(testbed.chain);
  return {
    testbed,
    hostile,
    official,
    async close() {
      await testbed.close();
      await Promise.all([hostile.stop(), official.stop()]);
    },
  };
}
