/** The two apps with every route switched on, and requests to them through supertest. */

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { after, before } from 'node:test';
import type { Express } from 'express';
import { type Response, Test } from 'supertest';
import { APP_PROBES } from '../../src/sidecar/app-probe-settings.ts';
import type { PodHooks } from '../../src/sidecar/pod-hooks.ts';
import { assertAcpError, checkoutProtocol, SEALED } from '../adapters/acp/testbed.ts';
import { assertEnvelope } from '../e2e/ask.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { type ConfigObject, NO_CHAIN } from '../support/config.ts';
import { openApps, type TestApps } from '../support/gateway.ts';
import { startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

/** What a request has beside its method and path. */
export interface Sent {
  /** A list sends the header once for each value. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

/** The two apps, and the backends that they call. */
export interface RouteWorld extends Pick<TestApps, 'agents' | 'management' | 'lifecycle' | 'fence' | 'config'> {
  readonly backend: SampleBackend;
  readonly checkouts: CheckoutBackend;
  close(): Promise<void>;
}

const [CARD_KEY, SIGNING_KEY] = [0, 1].map(() =>
  String(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })),
);

const SOLD_IN_PLACE = ['cities', 'document', 'free_echo', 'market_report', 'flaky', 'flaky_post'];

/** Exposes what is sold in place on these channels. */
export function exposedOn(...channels: readonly string[]): ConfigObject {
  return Object.fromEntries(SOLD_IN_PLACE.map((id) => [id, { expose: channels }]));
}

/** What each probe of the merchant's container asks: something that is free. */
const PROBED = { scheme: 'http', target: '/cities', headers: [] } as const;
const DOCUMENT = { name: 'Document', backend: { method: 'GET', path: '/document' }, pricing: { type: 'free' } };

/**
 * Every adapter, sales in place, keys that sign the agent card and receipts, and a facilitator
 * whose word counts.
 */
const EVERYTHING: ConfigObject = {
  storage: SEALED,
  protocols: { mcp: { enabled: true }, a2a: { enabled: true, signingKey: CARD_KEY }, acp: checkoutProtocol() },
  signing: { key: SIGNING_KEY },
  payments: { x402: { rpcUrl: undefined } },
  // The free echo is the only one: an operation with two prices is sold at neither address.
  resources: overlaid({ document: DOCUMENT, echo: undefined }, exposedOn('http', 'mcp', 'a2a', 'origin')),
  // Tests that send wrong tokens come from clients of their own.
  server: { trustProxy: 1 },
};

/**
 * Opens the apps with every route on; no process is started. `changes` are merged in last, and
 * `undefined` removes a setting. `hooks`: what the hooks of the pod start; nothing unless given.
 */
export async function openRoutes(changes: ConfigObject = {}, hooks?: PodHooks): Promise<RouteWorld> {
  const [backend, checkouts, facilitator] = await Promise.all([
    startSampleBackend(),
    startCheckoutBackend(),
    startHostileFacilitator(`eip155:${NO_CHAIN.chainId}`),
  ]);
  const checkoutUrl: ConfigObject = { protocols: { acp: { backend: { baseUrl: checkouts.url } } } };
  const apps = await openApps({
    chain: NO_CHAIN,
    backendUrl: backend.url,
    facilitator: { mode: 'remote', url: facilitator.url },
    appProbes: Object.fromEntries(
      APP_PROBES.map((kind) => [kind, { ...PROBED, port: Number(new URL(backend.url).port) }]),
    ),
    overrides: overlaid(overlaid(EVERYTHING, checkoutUrl), changes),
    ...(hooks === undefined ? {} : { hooks }),
  });
  // The first look at the components changes the discovery document.
  await send(apps.agents, 'GET', '/ready');
  return {
    ...apps,
    ...{ backend, checkouts },
    async close() {
      await apps.close();
      await Promise.all([backend.stop(), checkouts.stop(), facilitator.stop()]);
    },
  };
}

/** Object by object. What is `undefined` stays: it removes a setting from the configuration. */
export function overlaid(base: ConfigObject, changes: ConfigObject): ConfigObject {
  const entries = Object.entries(changes).map(([key, value]) => {
    const present = base[key];
    return [key, isObject(present) && isObject(value) ? overlaid(present, value) : value];
  });
  return { ...base, ...Object.fromEntries(entries) };
}

function isObject(value: unknown): value is ConfigObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One world for all tests of a suite; to be called inside `describe`. */
export function sharedRoutes(changes?: ConfigObject, hooks?: PodHooks): () => RouteWorld {
  let world: RouteWorld | undefined;
  before(async () => {
    world = await openRoutes(changes, hooks);
  });
  after(() => world?.close());
  return () => world ?? assert.fail('the world opens before the tests');
}

/** One request to an app, in process. `text` of the answer is the body as it came. */
export function send(app: Express, method: string, path: string, { headers = {}, body }: Sent = {}): Test {
  const test = new Test(app, method, path).set(headers).buffer(true).parse(asText);
  // As bytes: supertest would give a text without a content type one.
  return body === undefined ? test : test.serialize(String).send(Buffer.from(body));
}

/** The body as text; of an event stream the first piece, because it has no end. */
function asText(answer: Response, done: (error: Error | null, body: undefined) => void): void {
  const message = answer as unknown as IncomingMessage & { text: string };
  message.text = '';
  message.setEncoding('utf8');
  const endless = message.headers['content-type'] === 'text/event-stream';
  message.on('data', (piece: string) => {
    message.text += piece;
    if (!endless) return;
    done(null, undefined);
    message.destroy();
  });
  message.on('end', () => done(null, undefined));
}

/** Another client for each name: ten wrong tokens a minute are one client's. */
export function client(name: string): { readonly 'x-forwarded-for': string } {
  const [first = 0, second = 0] = createHash('sha256').update(name).digest();
  return { 'x-forwarded-for': `198.18.${first}.${second}` };
}

/** For `expect`: the error envelope with this code, under the id of its answer. */
export function envelope(code: string, details?: unknown): (answer: Response) => void {
  return ({ status, headers, text }) => {
    const body = assertEnvelope({ status, headers, text }, code);
    assert.equal(headers['cache-control'], 'no-store');
    if (details !== undefined) assert.deepEqual(body['details'], details);
  };
}

/** A refusal in the words of both kinds of paths. */
interface Refusal {
  readonly status: number;
  /** Of the error envelope. */
  readonly code: string;
  /** Of the Error document, at the mount of checkouts and below it. */
  readonly checkoutCode: string;
}

const ofCheckouts = (path: string): boolean => /^\/acp(?:\/|$)/.test(path);

/** `Vary` of a refusal: people get the error envelope as a page, but not the Error document. */
export function refusalVary(path: string): string | undefined {
  return ofCheckouts(path) ? undefined : 'Accept';
}

/** For `expect`: the refusal of a request to this path, in its words. */
export function refusal(path: string, { status, code, checkoutCode }: Refusal): (answer: Response) => void {
  return (answer) => {
    assert.equal(answer.status, status, answer.text);
    if (ofCheckouts(path)) assertAcpError(answer, status, checkoutCode);
    else envelope(code)(answer);
  };
}
