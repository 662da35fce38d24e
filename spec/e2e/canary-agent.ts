/** An agent that plants secrets in every call, for the canary spec of payments. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Buyer } from '../support/buyer.ts';
import { OPERATOR_TOKEN, type TestGateway } from '../support/gateway.ts';

/** Planted secrets, each where the gateway reads it. None may come out. */
export const CANARIES = {
  'the operator token': OPERATOR_TOKEN,
  'the next operator token': 'canary-next-operator-token-7f1e',
  'the bearer of the facilitator': 'canary-facilitator-bearer-91c2',
  'the key in the URL of the facilitator': 'canary-facilitator-path-key-3d',
  'the key in the URL of the chain node': 'canary-chain-node-path-key-84',
  'the password of Redis': 'canary-redis-password-5b9a0c',
  "the merchant's API key": 'canary-merchant-api-key-c04f',
  "an agent's Authorization": 'canary-agent-authorization-2e',
  "an agent's mandate": 'canary-agent-mandate-6a77d1',
  "an agent's cookie": 'canary-agent-cookie-b83e',
  'an idempotency key': 'canary-idempotency-key-1f20e9',
  'a token in a query': 'canary-token-in-a-query-d5',
  'a secret in a broken body': 'canary-in-a-broken-body-90',
  'a secret in a refused input': 'canary-in-a-refused-input-4c',
  'a proof that is none': 'canary-as-a-proof-that-is-none',
  "a secret in the merchant's failure": 'canary-in-the-merchants-failure',
  "a secret in the merchant's redirect": 'canary-in-the-merchants-redirect',
} as const;
/**
 * Names that an agent makes up. Its own answers hold them, and the path in the log; nothing else
 * does.
 */
export const NAMES = {
  'the name of a resource': 'canary-as-a-resource-name-7b',
  'the name of a member': 'canary-as-a-member-name-e1',
} as const;
export const TOOL = 'market_report';
export const INPUT = { city: 'Berlin' };

export type Channel = 'http' | 'mcp' | 'a2a';
export const CHANNELS: readonly Channel[] = ['http', 'mcp', 'a2a'];

/** An agent that sends secrets in every possible field and keeps all answers. */
export function canaryAgent(buyer: Buyer) {
  /** Everything that was answered, heads and bodies. */
  const answers: string[] = [];
  /** Signatures and ends of the proofs that were sent. */
  const proofs: string[] = [];

  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    authorization: `Bearer ${CANARIES["an agent's Authorization"]}`,
    'agent-authorization': CANARIES["an agent's mandate"],
    cookie: `session=${CANARIES["an agent's cookie"]}`,
  };
  const KEY = { 'idempotency-key': CANARIES['an idempotency key'] };
  const sent = async (
    gateway: TestGateway,
    path: string,
    body?: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    const request = body === undefined ? {} : { method: 'POST', body };
    const answer = await fetch(`${gateway.url}${path}`, {
      ...request,
      headers: { ...headers, ...more },
      redirect: 'manual',
    });
    const text = await answer.text().catch(() => 'broken off');
    answers.push(`${answer.status} ${JSON.stringify([...answer.headers])} ${text}`);
    return text;
  };
  const rpc = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

  /** One call on each channel, with or without a proof of its own. */
  const channels = {
    http: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(gateway, `/api/resources/${resource}/invoke`, JSON.stringify(input), {
        ...KEY,
        ...(proof === undefined ? {} : { 'payment-signature': proof }),
      }),
    mcp: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(
        gateway,
        '/mcp',
        rpc('tools/call', {
          name: resource,
          arguments: input,
          ...(proof === undefined ? {} : { _meta: { 'x402/payment': proof } }),
        }),
        KEY,
      ),
    a2a: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(
        gateway,
        '/a2a',
        rpc('SendMessage', {
          message: {
            messageId: randomUUID(),
            role: 'ROLE_USER',
            parts: [{ data: { resource, input }, mediaType: 'application/json' }],
            ...(proof === undefined ? {} : { metadata: { 'x402.payment.payload': proof } }),
          },
        }),
        KEY,
      ),
  } as const;
  const proofFor = async (gateway: TestGateway, resource: string, input: object): Promise<string> => {
    const terms = JSON.parse(await channels.http(gateway, resource, input)) as {
      readonly payment: { readonly envelope: unknown };
    };
    const proof = await buyer.pay(terms.payment.envelope);
    const { payload } = JSON.parse(Buffer.from(proof, 'base64').toString()) as { payload: { signature: string } };
    proofs.push(payload.signature.slice(2), proof.slice(-60));
    return proof;
  };

  /** What goes right, and what goes wrong on the agent's side or the merchant's. */
  const trade = async (gateway: TestGateway, channel: Channel): Promise<void> => {
    const call = channels[channel];
    const proof = await proofFor(gateway, TOOL, INPUT);
    assert.match(await call(gateway, TOOL, INPUT, proof), /sold/, `${channel} sells`);
    assert.match(await call(gateway, TOOL, INPUT, proof), /sold/, `${channel} repeats the answer for the key`);
    await call(gateway, TOOL, { city: 'Lisboa' }, proof);
    await call(gateway, 'failing_post', { status: 500 }, await proofFor(gateway, 'failing_post', { status: 500 }));
    await call(gateway, 'resetting_post', {}, await proofFor(gateway, 'resetting_post', {}));
    for (const free of ['free_failing', 'free_redirecting', 'free_resetting'])
      await call(gateway, free, free === 'free_failing' ? { status: 500 } : {});
    await call(gateway, TOOL, INPUT, CANARIES['a proof that is none']);
    await call(gateway, TOOL, INPUT, Buffer.from(CANARIES['a proof that is none']).toString('base64'));
    await call(gateway, TOOL, { city: { wrong: CANARIES['a secret in a refused input'] } });
    await call(gateway, TOOL, { [NAMES['the name of a member']]: 1, city: 'Berlin' });
    await call(gateway, NAMES['the name of a resource'], {});
    const path = channel === 'http' ? `/api/resources/${TOOL}/invoke` : `/${channel}`;
    await sent(gateway, path, `{"city":"${CANARIES['a secret in a broken body']}"`);
    await sent(gateway, path, `{"a":1,"a":"${CANARIES['a secret in a broken body']}"}`);
    await sent(gateway, `${path}?token=${CANARIES['a token in a query']}`, '{}');
  };

  return { answers, proofs, channels, sent, proofFor, trade };
}
