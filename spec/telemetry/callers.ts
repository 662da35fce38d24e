import { randomUUID } from 'node:crypto';
import { after, before } from 'node:test';
import { eventually } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { scrape } from './scrape.ts';

/** The log line of a call. */
interface Line {
  readonly requestId: string;
  readonly level: number;
  readonly channel?: string;
  readonly resource?: string;
  readonly outcome?: string;
  readonly traceId?: string;
  readonly transaction?: string;
  readonly refusal?: string;
}

/** A paid resource, and its input. */
export const TOOL = 'market_report';
export const INPUT = { city: 'Berlin' };

/** A gateway with all adapters for the tests of a suite, and calls whose request ids are known. */
export function watchedGateway() {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } } });
  });
  after(() => testbed.close());
  return {
    seller: () => testbed,
    /** Over HTTP; with a proof it carries a key too. */
    invoke: (id: string, resource: string, input: object, proof?: string): Promise<Response> =>
      testbed.gateway.invoke(resource, input, {
        'x-request-id': id,
        ...(proof === undefined ? {} : { 'payment-signature': proof, 'idempotency-key': 'a-key-of-the-buyer' }),
      }),
    /** A message to any path. */
    post: (path: string, id: string, body: string): Promise<Response> =>
      fetch(`${testbed.gateway.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0', 'x-request-id': id },
        body,
      }),
    proof: (): Promise<string> => testbed.proof(TOOL, INPUT),
    /** The log line of a request, as soon as it is there. */
    lineOf: (id: string): Promise<Line> =>
      eventually(
        async () =>
          testbed.gateway.logLines
            .map((line) => JSON.parse(line) as Line & { readonly path?: string })
            .find((line) => line.requestId === id && line.path !== undefined),
        `the line of ${id}`,
      ),
    /** The value of `acg_calls_total` for these labels. */
    countOf: async (resource: string, channel: string, outcome: string): Promise<number> =>
      (await scrape(testbed.gateway.managementUrl)).get(
        `acg_calls_total{resource="${resource}",channel="${channel}",outcome="${outcome}"}`,
      ) ?? 0,
  };
}

export function rpc(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
}

/** A call over MCP. */
export function tool(name: string, input: object, payment?: string): string {
  const paid = payment === undefined ? {} : { _meta: { 'x402/payment': payment } };
  return rpc('tools/call', { name, arguments: input, ...paid });
}

/** A call over A2A. */
export function message(resource: string, input: object, payment?: string): string {
  return rpc('SendMessage', {
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: [{ data: { resource, input }, mediaType: 'application/json' }],
      ...(payment === undefined ? {} : { metadata: { 'x402.payment.payload': payment } }),
    },
  });
}
