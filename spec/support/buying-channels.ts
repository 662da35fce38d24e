/** Buys a resource over each channel, for `npm run buy`. */

import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { askPrice, redeem } from './purchase.ts';

/** The terms of a challenge, to be signed; `asset` is the token they are paid in. */
export interface Terms {
  readonly asset: string;
  readonly message: string;
  readonly paymentRequired: unknown;
}

/** The answer, in the words of its channel. */
export interface Bought {
  readonly ok: boolean;
  readonly transaction: string;
  readonly text: string;
}

/**
 * One way to buy: ask for the price, then bring the base64 of a signed PaymentPayload, and a
 * mandate where one is needed.
 */
export interface BuyingChannel {
  ask(resourceId: string, input: object): Promise<Terms>;
  pay(resourceId: string, input: object, proof: string, mandate?: string): Promise<Bought>;
}

type Members = Readonly<Record<string, unknown>>;

/** The ways to buy from a gateway, by channel. */
export const BUYING_CHANNELS: ReadonlyMap<string, (gateway: string) => BuyingChannel> = new Map([
  ['http', overHttp],
  ['mcp', overMcp],
  ['a2a', overA2a],
]);

function overHttp(gateway: string): BuyingChannel {
  return {
    ask: (resourceId, input) => askPrice(gateway, resourceId, JSON.stringify(input)),
    async pay(resourceId, input, proof, mandate) {
      const { status, transaction, body } = await redeem(gateway, resourceId, JSON.stringify(input), proof, mandate);
      return { ok: status < 300, transaction, text: body.toString() };
    },
  };
}

/** With the official client; the proof is an argument, where models can put it. */
function overMcp(gateway: string): BuyingChannel {
  const call = async (name: string, input: Members) => {
    const client = new Client({ name: 'buyer', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway}/mcp`)));
    try {
      return await client.callTool({ name, arguments: input });
    } finally {
      await client.close();
    }
  };
  return {
    async ask(name, input) {
      const { structuredContent } = await call(name, { ...input });
      return termsOf(structuredContent);
    },
    async pay(name, input, proof, mandate) {
      const { isError = false, content, _meta } = await call(name, { ...input, ...carried(proof, mandate) });
      const [block] = content;
      const { transaction = '' } = (_meta?.['x402/payment-response'] ?? {}) as { transaction?: string };
      return { ok: !isError, transaction, text: block?.type === 'text' ? block.text : JSON.stringify(block) };
    },
  };
}

/** Without continuation: the message again, with its payment. */
function overA2a(gateway: string): BuyingChannel {
  const send = async (resource: string, input: Members): Promise<A2aTask> => {
    const parts = [{ data: { resource, input }, mediaType: 'application/json' }];
    const params = { message: { messageId: randomUUID(), role: 'ROLE_USER', parts } };
    const response = await fetch(`${gateway}/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
    });
    const answer = (await response.json()) as { readonly result?: { readonly task: A2aTask } };
    if (answer.result === undefined) throw new Error(`expected a task, got ${JSON.stringify(answer)}`);
    return answer.result.task;
  };
  return {
    async ask(resourceId, input) {
      const { status, artifacts } = await send(resourceId, { ...input });
      return termsOf(status.message?.metadata?.['x402.payment.required'] ?? artifacts?.[0].parts[0].data);
    },
    async pay(resourceId, input, proof, mandate) {
      const { status, artifacts } = await send(resourceId, { ...input, ...carried(proof, mandate) });
      const artifact = artifacts?.[0];
      if (artifact === undefined) throw new Error(`expected an artifact, got ${JSON.stringify(status)}`);
      const { transaction = '' } = (artifact.metadata?.['x402/payment-response'] ?? {}) as { transaction?: string };
      const ok = status.state === 'TASK_STATE_COMPLETED';
      return { ok, transaction, text: JSON.stringify(artifact.parts[0].data) };
    },
  };
}

/** Proof and mandate as arguments, where models can put them. */
function carried(proof: string, mandate: string | undefined): Members {
  return { _payment: proof, ...(mandate === undefined ? {} : { _authorization: mandate }) };
}

/** A task as far as a buyer reads it. */
interface A2aTask {
  readonly status: { readonly state: string; readonly message?: { readonly metadata?: Members } };
  readonly artifacts?: readonly [
    { readonly parts: readonly [{ readonly data: unknown }]; readonly metadata?: Members },
  ];
}

/** @throws Error when there is nothing to pay */
function termsOf(document: unknown): Terms {
  const { accepts, resource } = (document ?? {}) as {
    readonly accepts?: readonly { readonly asset: string; readonly amount: string }[];
    readonly resource?: { readonly url: string };
  };
  const offer = accepts?.[0];
  if (offer === undefined) throw new Error(`expected a challenge, got ${JSON.stringify(document)}`);
  const message = `${offer.amount} units are asked for ${resource?.url}`;
  return { asset: offer.asset, message, paymentRequired: document };
}
