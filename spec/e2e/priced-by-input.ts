/** A merchant whose prices follow the input, with a quote server that a test scripts. */

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import type { Buyer } from '../support/buyer.ts';
import { type ConfigObject, CURRENCY } from '../support/config.ts';
import { answerBytes, answerJson } from '../support/http-server.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { openTestbed, type Quote, type Testbed } from '../support/testbed.ts';
import { type Brought, bring } from './bring.ts';

/** An object schema whose members are all required. */
function inputOf(properties: ConfigObject): ConfigObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function sold(name: string, backend: ConfigObject, properties: ConfigObject, pricing: ConfigObject): ConfigObject {
  return {
    name,
    ...{ backend, inputSchema: inputOf(properties) },
    pricing: { type: 'fixed', currency: CURRENCY, ...pricing },
    expose: ['http', 'mcp', 'a2a', 'origin'],
  };
}

/** The price by quote of `custom`. */
export const BY_QUOTE: ConfigObject = { by: { quote: { path: '/price', min: '0.01', max: '2' } } };
/** The price by unit of `translate`. */
export const BY_TEXT: ConfigObject = {
  amount: '0.0001',
  by: { unit: { pointer: '/text', min: '0.001', max: '0.05' } },
};

const BY_PAGES = {
  pointer: '/pages',
  steps: [
    { upTo: 10, amount: '0.01' },
    { upTo: 100, amount: '0.05' },
  ],
};

/** One resource for each rule, and `measured`, whose unit is a number. */
export const RESOURCES: Readonly<Record<string, ConfigObject>> = {
  translate: sold('Translation', { method: 'POST', path: '/translate' }, { text: { type: 'string' } }, BY_TEXT),
  measured: sold(
    'Measured',
    { method: 'POST', path: '/measured' },
    { count: { type: 'number' } },
    { amount: '0.001', by: { unit: { pointer: '/count', min: '0.001', max: '1' } } },
  ),
  scan: sold('Scan', { method: 'GET', path: '/scan' }, { pages: { type: 'integer' } }, { by: { tier: BY_PAGES } }),
  render: sold(
    'Rendering',
    { method: 'POST', path: '/render' },
    { quality: { type: 'string', enum: ['low', 'high'] } },
    { by: { choice: { pointer: '/quality', amounts: { low: '0.01', high: '0.05' } } } },
  ),
  custom: sold('Custom work', { method: 'POST', path: '/custom' }, { size: { type: 'number' } }, BY_QUOTE),
};

/** The merchant's service: goods are the request that bought them; quotes are scripted. */
export interface PricedBackend extends SampleBackend {
  /** How quotes are answered from now on. */
  quoting(answer: Route['answer']): void;
  /** What happens while goods are made, from now on. */
  working(work: () => Promise<unknown>): void;
  /** Inputs of quotes and bodies of goods since `forget`, as text. */
  quoted(): readonly string[];
  delivered(): readonly string[];
  headersOf(path: string): IncomingHttpHeaders | undefined;
}

/** A quote of a hundredth for each piece of the size. */
export const HONEST: Route['answer'] = ({ body }, response) => {
  const { size } = JSON.parse(body.toString()) as { readonly size: number };
  answerJson(response, 200, { amount: (size / 100).toFixed(2) });
};

/** No quote. */
export const AWAY: Route['answer'] = (_, response) => answerJson(response, 500, {});

export async function startPricedBackend(): Promise<PricedBackend> {
  let quote = HONEST;
  let work = async (): Promise<unknown> => undefined;
  const goods: Route['answer'] = async ({ method, url, body }, response) => {
    await work();
    answerBytes(response, 200, 'application/json', method === 'GET' ? Buffer.from(JSON.stringify({ url })) : body);
  };
  const backend = await startSampleBackend({
    routes: [
      route('POST', '/price', (...exchange) => quote(...exchange)),
      route('POST', '/(translate|measured|render|custom|later)', goods),
      route('GET', '/scan', goods),
    ],
  });
  const bodies = (isQuote: boolean): readonly string[] =>
    backend.requests.filter(({ url }) => (url === '/price') === isQuote).map(({ body }) => body.toString());
  return {
    ...backend,
    quoting: (answer) => {
      quote = answer;
    },
    working: (next) => {
      work = next;
    },
    quoted: () => bodies(true),
    delivered: () => bodies(false),
    headersOf: (path) => backend.requests.findLast(({ url }) => url === path)?.headers,
  };
}

/** A gateway before that merchant. */
export interface PricedTestbed extends Omit<Testbed, 'backend'> {
  readonly backend: PricedBackend;
  /** Runs something that moves exactly these base units from a buyer to the payee. */
  takes(units: bigint, run: () => Promise<unknown>, buyer?: Buyer): Promise<void>;
  /**
   * Brings a proof with an input. It buys for these base units; or it is answered so, such as
   * `402 at 2000` or `503 GATEWAY_BUSY`, takes nothing and reaches no work.
   */
  brings(proof: string, id: string, input: object, result: bigint | string, buyer?: Buyer): Promise<void>;
}

/** Opens both. */
export async function openPriced(overrides: ConfigObject): Promise<PricedTestbed> {
  const backend = await startPricedBackend();
  const testbed = await openTestbed(async () => ({ backendUrl: backend.url, overrides }));
  const takes: PricedTestbed['takes'] = async (units, run, buyer = testbed.buyer) => {
    const [funds, income] = [await buyer.balance(), await testbed.income()];
    await run();
    assert.deepEqual([funds - (await buyer.balance()), (await testbed.income()) - income], [units, units]);
  };
  return {
    ...testbed,
    ...{ backend, takes },
    brings(proof, id, input, result, buyer) {
      const work = async (): Promise<void> => {
        const done = backend.delivered().length;
        const { status, bytes, payment } = await bring(testbed.gateway, id, input, { proof });
        if (typeof result === 'bigint') return assert.equal(status, 200, bytes.toString());
        const said = status === 402 ? `at ${asked({ status, bytes }).amount}` : JSON.parse(bytes.toString()).code;
        assert.deepEqual([`${status} ${said}`, payment, backend.delivered().length], [result, undefined, done]);
      };
      return takes(typeof result === 'bigint' ? result : 0n, work, buyer);
    },
    async close() {
      await testbed.close();
      await backend.stop();
    },
  };
}

/** A 402: its first amount in base units, the document to sign, and its sentence. */
export function asked({ status, bytes }: Pick<Brought, 'status' | 'bytes'>) {
  assert.equal(status, 402, bytes.toString());
  const { payment, message } = JSON.parse(bytes.toString()) as Quote['body'] & { readonly message: string };
  return { amount: payment.accepts[0]?.['amount'], envelope: payment.envelope, message };
}
