/** A checkout gateway all of whose output is collected, for the canary spec of checkouts. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { JsonObject } from '../../src/json/types.ts';
import { type Asked, askAcp, assertAcpError, SEALED } from '../adapters/acp/testbed.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import type { WorldParts } from '../support/config.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { type SpanReceiver, startSpanReceiver } from '../telemetry/span-receiver.ts';
import type { Answered } from './ask.ts';
import { CANARIES, CREATE, ECHOED, FIELDS } from './canary-buyer.ts';
import type { startQuotingMerchant } from './canary-merchant.ts';
import type { Sinks } from './canary-sinks.ts';

/** A gateway with the most verbose output, and an assistant that keeps all answers. */
export interface WatchedGateway {
  readonly gateway: CheckoutGateway;
  send(asked: Asked): Promise<Answered>;
  /** A POST that ends with this status, and with this code where it is an error. */
  post(path: string, body: JsonObject, key: string, status: number, code?: string): Promise<Answered>;
  /** Opens a session. @returns its path */
  open(): Promise<string>;
  /** Everything that was answered, heads and bodies. */
  answers(): string;
  /** Ends the gateway. @returns all of its output but answers and calls of the backend */
  end(): Promise<Sinks>;
  /** After `end`, or instead of it. */
  remove(): Promise<void>;
}

/** How long the merchant may take to complete, milliseconds. */
const TIMEOUT_MS = 1_500;

export async function startWatchedGateway(
  backend: Awaited<ReturnType<typeof startQuotingMerchant>>,
  { storage, password }: { readonly storage: WorldParts['storage']; readonly password?: string },
): Promise<WatchedGateway> {
  const spans = await startSpanReceiver();
  const gateway = await startCheckoutGateway({
    backendUrl: backend.url,
    storage,
    acp: {
      backend: {
        headers: { 'x-api-key': CANARIES["the merchant's API key"] },
        operations: { completeCheckoutSession: { timeoutMs: TIMEOUT_MS } },
      },
    },
    overrides: {
      server: { adminTokenNext: CANARIES['the next operator token'] },
      ...(password === undefined ? {} : { storage: { ...SEALED, redis: { password } } }),
    },
    env: { LOG_LEVEL: 'trace', OTEL_EXPORTER_OTLP_ENDPOINT: spans.url, OTEL_BSP_SCHEDULE_DELAY: '50' },
  });
  const answers: string[] = [];
  let opened = 0;
  const keyOf = (name: string): string => `${ECHOED['an idempotency key']} ${name}`;

  const send = async ({ headers, ...asked }: Asked): Promise<Answered> => {
    const answer = await askAcp(gateway.url, { ...asked, headers: { ...FIELDS, ...headers } });
    answers.push(`${answer.status} ${JSON.stringify(answer.headers)} ${answer.text}`);
    return answer;
  };
  const post = async (path: string, body: JsonObject, key: string, status: number, code?: string) => {
    const answer = await send({ path, body, headers: { 'idempotency-key': keyOf(key) } });
    if (code === undefined) assert.equal(answer.status, status, answer.text);
    else assertAcpError(answer, status, code);
    return answer;
  };
  return {
    gateway,
    send,
    post,
    async open() {
      opened += 1;
      const { text } = await post('/checkout_sessions', CREATE, `create ${opened}`, 201);
      return `/checkout_sessions/${(JSON.parse(text) as { readonly id: string }).id}`;
    },
    answers: () => answers.join('\n'),
    end: () => outputOf(gateway, spans),
    async remove() {
      await gateway.stop();
      await spans.stop();
    },
  };
}

async function outputOf(gateway: CheckoutGateway, spans: SpanReceiver): Promise<Sinks> {
  const text = async (answer: Promise<Response>): Promise<string> => (await answer).text();
  const published = ['/health', '/ready', '/.well-known/acp.json', '/.well-known/agent-commerce'];
  const read = {
    events: await text(gateway.operator('/api/events?limit=500')),
    receipts: await text(gateway.operator('/api/receipts?limit=500')),
    metrics: await readMetrics(gateway.managementUrl),
    'readiness on the management port': await text(fetch(`${gateway.managementUrl}/ready`)),
    'the published documents': (await Promise.all(published.map((path) => text(fetch(`${gateway.url}${path}`))))).join(
      '\n',
    ),
  };
  // The last lines and spans are written when it ends.
  await gateway.process.stop();
  return { ...read, log: await readFile(gateway.logPath, 'utf8'), traces: spans.bodies.join('\n') };
}
