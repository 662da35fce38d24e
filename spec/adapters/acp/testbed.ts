import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before } from 'node:test';
import type { JsonObject } from '../../../src/json/json.ts';
import { type Answered, ask, isEnvelope } from '../../e2e/ask.ts';
import { exchange, head } from '../../server/http/raw.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../../support/acp/checkout-backend.ts';
import { type ConfigObject, NO_CHAIN } from '../../support/config.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from '../../support/gateway.ts';

export const TOKEN = 'token-of-the-assistant';
export const OTHER_TOKEN = 'token-of-the-other-assistant';
export const SECRET = 'secret-of-these-tests-with-40-characters';
export const SEALING_KEY = Buffer.alloc(32, 7).toString('base64');
/** `storage` of a gateway that serves checkouts: their answers are sealed. */
export const SEALED = { sealing: { keys: [{ id: 'k1', key: SEALING_KEY }] } };

/** A gateway that serves checkouts and nothing else, with a backend of its own. */
export interface CheckoutTestbed {
  readonly gateway: TestGateway;
  readonly backend: CheckoutBackend;
  close(): Promise<void>;
}

export interface CheckoutTestbedParts {
  /** Merged into `protocols.acp`. */
  readonly acp?: ConfigObject;
  /** Merged into everything. */
  readonly overrides?: ConfigObject;
  readonly storage?: NonNullable<TestGatewayParts['storage']>;
  readonly checkouts?: NonNullable<TestGatewayParts['checkouts']>;
}

export async function openCheckoutTestbed({
  acp = {},
  overrides = {},
  ...parts
}: CheckoutTestbedParts = {}): Promise<CheckoutTestbed> {
  const backend = await startCheckoutBackend();
  const gateway = await openGateway({
    ...parts,
    chain: NO_CHAIN,
    backendUrl: backend.url,
    facilitator: { mode: 'local' },
    overrides: {
      ...{ payments: undefined, resources: undefined, storage: SEALED, protocols: { acp: checkoutProtocol(acp) } },
      ...overrides,
    },
  });
  return {
    gateway,
    backend,
    async close() {
      await gateway.close();
      await backend.stop();
    },
  };
}

/** One gateway for all tests of a suite; to be called inside `describe` or at the top of a file. */
export function sharedCheckoutTestbed(parts?: CheckoutTestbedParts): CheckoutTestbed {
  let open: CheckoutTestbed;
  before(async () => {
    open = await openCheckoutTestbed(parts);
  });
  after(() => open.close());
  return {
    get gateway() {
      return open.gateway;
    },
    get backend() {
      return open.backend;
    },
    close: () => open.close(),
  };
}

/** `protocols.acp` with two assistants. `changes` replace its members. */
export function checkoutProtocol(changes: ConfigObject = {}): ConfigObject {
  return {
    enabled: true,
    auth: {
      clients: [
        { id: 'assistant', tokens: [TOKEN] },
        { id: 'other', tokens: [OTHER_TOKEN] },
      ],
    },
    idempotency: { secret: SECRET },
    ...changes,
  };
}

/** A header of `undefined` is not sent. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** What an agent sends; members that are missing are right. */
export interface Asked {
  readonly method?: string;
  /** Below the mount. */
  readonly path?: string;
  readonly headers?: Headers;
  readonly body?: JsonObject | string | Buffer;
}

/** The smallest cart. */
export const CART = { line_items: [{ id: 'item_1' }], currency: 'usd', capabilities: {} } as const;

/** The headers of a right call, with a key of its own. */
export function rightHeaders(method: string, changes: Headers = {}): Record<string, string> {
  const headers: Headers = {
    authorization: `Bearer ${TOKEN}`,
    'api-version': '2026-04-17',
    ...(method === 'POST' ? { 'idempotency-key': randomUUID(), 'content-type': 'application/json' } : {}),
    ...changes,
  };
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Calls the gateway; a POST is a create with the smallest cart unless given. */
export function askAcp(
  base: string,
  { method = 'POST', path = '/checkout_sessions', headers, body }: Asked = {},
): Promise<Answered> {
  const given = body ?? (method === 'POST' ? CART : undefined);
  const bytes =
    given === undefined || typeof given === 'string' || Buffer.isBuffer(given) ? given : JSON.stringify(given);
  return ask(base, {
    method,
    path: `/acp${path}`,
    headers: rightHeaders(method, headers),
    ...(bytes === undefined ? {} : { body: bytes }),
  });
}

/**
 * The Error document (acp 6) with the headers of every answer (acp 2.2), and never the gateway's
 * own envelope.
 */
export function assertAcpError(answer: Answered, status: number, code: string): JsonObject {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.ok(answer.headers['x-request-id'] !== undefined);
  const document = JSON.parse(answer.text) as JsonObject;
  assert.equal(isEnvelope(document), false);
  assert.equal(document['code'], code);
  assert.match(String(document['type']), /^(?:invalid_request|processing_error|service_unavailable)$/);
  assert.equal(typeof document['message'], 'string');
  const known = ['type', 'code', 'message', 'param', 'supported_versions'];
  assert.deepEqual(
    Object.keys(document).filter((name) => !known.includes(name)),
    [],
  );
  return document;
}

const nameOf = (line: string): string => line.slice(0, line.indexOf(':')).toLowerCase();

/**
 * The head of a create with these header lines, byte for byte; the others are right.
 * `Connection: close`.
 */
export function createHead(lines: readonly string[]): string {
  const given = lines.map(nameOf);
  const right = [
    'Host: shop',
    `Authorization: Bearer ${TOKEN}`,
    'API-Version: 2026-04-17',
    `Idempotency-Key: ${randomUUID()}`,
    'Content-Type: application/json',
  ].filter((line) => !given.includes(nameOf(line)));
  return head(['POST /acp/checkout_sessions HTTP/1.1', 'Connection: close', ...right, ...lines]);
}

/** Sends such a create with the smallest cart, and returns the whole answer. */
export function rawCreate(url: string, lines: readonly string[]): Promise<string> {
  const body = JSON.stringify(CART);
  return exchange(url, [Buffer.from(`${createHead([...lines, `Content-Length: ${body.length}`])}${body}`, 'latin1')]);
}

/** Status and code of a refusal. */
export function refusalIn(answer: string): { readonly status: number; readonly code: string } {
  const { code } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { code: string };
  return { status: Number(answer.slice(9, 12)), code };
}
