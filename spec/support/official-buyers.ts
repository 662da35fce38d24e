/** How unmodified clients of each channel buy, with a wallet that the caller brings. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { wrapAxiosWithPayment } from '@x402/axios';
import { decodePaymentResponseHeader } from '@x402/core/http';
import type { PaymentRequired, SettleResponse } from '@x402/core/types';
import { wrapFetchWithPayment, type x402Client } from '@x402/fetch';
import axios from 'axios';
import { CLIENT_MODES } from './mcp-clients.ts';
import { buyTool, receiptOf } from './mcp-payer.ts';

/** What is bought, and where. */
export interface Order {
  /** Of the gateway. */
  readonly url: string;
  readonly resource: string;
  readonly input: Record<string, unknown>;
}

/** What came: the goods, and the network that the receipt names. */
export interface Bought {
  readonly goods: unknown;
  readonly network: string | undefined;
}

/** By the name of the client. */
export const OFFICIAL_BUYERS: Readonly<Record<string, (wallet: x402Client, order: Order) => Promise<Bought>>> = {
  '@x402/fetch': (wallet, { url, resource, input }) =>
    fetchPaying(wallet, `${url}/api/resources/${resource}/invoke`, jsonPost(input)),
  async '@x402/axios'(wallet, { url, resource, input }) {
    const shop = wrapAxiosWithPayment(axios.create({ baseURL: url }), wallet as never);
    const answer = await shop.post(`/api/resources/${resource}/invoke`, input);
    return { goods: answer.data, network: decodePaymentResponseHeader(answer.headers['payment-response']).network };
  },
  ...Object.fromEntries(
    Object.entries(CLIENT_MODES).map(([name, { connect }]) => [
      `${name} of MCP`,
      async (wallet: x402Client, { url, resource, input }: Order) => {
        const client = await connect(`${url}/mcp`);
        const { answer } = await buyTool(client, wallet, { name: resource, arguments: input });
        await client.close();
        assert.notEqual(answer.isError, true);
        return { goods: answer.structuredContent, network: receiptOf(answer)?.network };
      },
    ]),
  ),
  async 'the client of A2A'(wallet, { url, resource, input }) {
    const card = await (await new ClientFactory().createFromUrl(url)).getAgentCard();
    const supportedInterfaces = card.supportedInterfaces.map((one) => ({ ...one, url: `${url}/a2a` }));
    const client = await new ClientFactory().createFromAgentCard({ ...card, supportedInterfaces });
    const send = async (metadata?: Record<string, unknown>) => {
      const content = { $case: 'data', value: { resource, input } } as const;
      const parts = [{ content, mediaType: 'application/json', filename: '', metadata: undefined }];
      const unused = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [] };
      const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts, ...unused, metadata };
      const task = await client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
      return 'artifacts' in task ? task : assert.fail('the answer is a task');
    };
    const asked = (await send()).status?.message?.metadata?.['x402.payment.required'] as PaymentRequired;
    const payload = await wallet.createPaymentPayload(asked);
    const { status, artifacts } = await send({
      'x402.payment.status': 'payment-submitted',
      'x402.payment.payload': payload,
    });
    const content = artifacts[0]?.parts[0]?.content;
    assert.ok(status?.state === TaskState.TASK_STATE_COMPLETED && content?.$case === 'data', JSON.stringify(status));
    const receipts = status.message?.metadata?.['x402.payment.receipts'] as readonly SettleResponse[] | undefined;
    return { goods: content.value, network: receipts?.[0]?.network };
  },
};

/** Buys with `@x402/fetch`. @throws AssertionError where the answer is not 200 */
export async function fetchPaying(wallet: x402Client, url: string, init: RequestInit): Promise<Bought> {
  const answer = await wrapFetchWithPayment(fetch, wallet)(url, init);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { network } = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
  return { goods: JSON.parse(text), network };
}

/** A POST of JSON. */
export function jsonPost(input: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) };
}
