import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { schemaOf } from '../../src/adapters/acp/backend-document.ts';
import type { DocumentName } from '../../src/adapters/acp/validation/validator.ts';
import { OPERATION_RULES, type Operation, SESSION_PLACE } from '../../src/checkouts/operations.ts';
import { isObject, type JsonObject } from '../../src/json/types.ts';
import { askAcp, assertAcpError } from '../adapters/acp/testbed.ts';
import { OFFICIAL_SCHEMA_FILE, type Official, readOfficial, unless } from '../adapters/acp/validation/published.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import { paymentWith } from './acp-assistant.ts';
import type { Answered } from './ask.ts';

/** The examples that the protocol publishes: test data, no part of this repository. */
const FOLDER = join(dirname(OFFICIAL_SCHEMA_FILE), '../examples');
const skip = unless(FOLDER, 'the published examples were not sent through a gateway');

const REQUESTS = {
  createCheckoutSession: 'CheckoutSessionCreateRequest',
  updateCheckoutSession: 'CheckoutSessionUpdateRequest',
  completeCheckoutSession: 'CheckoutSessionCompleteRequest',
  cancelCheckoutSession: 'CancelSessionRequest',
} as const satisfies Partial<Record<Operation, DocumentName>>;

/** Bodies that are right, where the example is what comes back. */
const RIGHT: Readonly<Record<keyof typeof REQUESTS, JsonObject>> = {
  createCheckoutSession: { line_items: [{ id: 'item_1' }], currency: 'usd', capabilities: {} },
  updateCheckoutSession: {},
  completeCheckoutSession: paymentWith('tok_1'),
  cancelCheckoutSession: {},
};

describe('the examples that the protocol publishes', { skip }, () => {
  let official: Official;
  let gateway: CheckoutGateway;
  let reply: { readonly status: number; readonly body: Buffer };
  const received: Buffer[] = [];
  const backend = http.createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    received.push(Buffer.concat(chunks));
    res.writeHead(reply.status, { 'content-type': 'application/json; charset=utf-8' }).end(reply.body);
  });
  before(async () => {
    official = readOfficial();
    await once(backend.listen(0, '127.0.0.1'), 'listening');
    const { port } = backend.address() as AddressInfo;
    gateway = await startCheckoutGateway({
      backendUrl: `http://127.0.0.1:${port}`,
      acp: { authenticationErrors: true, backend: { scopesByClient: true } },
    });
  });
  after(async () => {
    await gateway?.stop();
    backend.close();
  });

  const send = (operation: Operation, key: string, body?: string | Buffer): Promise<Answered> => {
    const { method, path } = OPERATION_RULES[operation];
    return askAcp(gateway.url, {
      method,
      // A session for each example: none of them waits for the end of another.
      path: path.replace(SESSION_PLACE, encodeURIComponent(key)),
      ...(method === 'GET' ? {} : { headers: { 'idempotency-key': key } }),
      ...(body === undefined ? {} : { body }),
    });
  };

  for (const { name, document } of examples()) {
    const operation = operationOf(name);
    if (operation === undefined) continue;
    if (!name.includes('request'))
      it(`${name}: comes back from the merchant byte by byte, or not at all`, async () => {
        const { success } = OPERATION_RULES[operation];
        reply = { status: success, body: bytesOf(document) };
        const body = operation === 'getCheckoutSession' ? undefined : JSON.stringify(RIGHT[operation]);
        const answer = await send(operation, name, body);
        if (!official.accepts(schemaOf(operation, document), document))
          return void assertAcpError(answer, 502, 'processing_error');
        assert.deepEqual([answer.status, answer.text], [success, reply.body.toString()]);
        if (operation === 'getCheckoutSession') return;
        reply = { status: 500, body: Buffer.from('{}') };
        const again = await send(operation, name, body);
        assert.deepEqual([again.text, again.headers['idempotent-replayed']], [answer.text, 'true']);
      });
    else if (operation !== 'getCheckoutSession')
      it(`${name}: reaches the merchant byte by byte, or not at all`, async () => {
        // Whatever it answers: the request is looked at.
        reply = { status: 409, body: Buffer.from('{}') };
        received.length = 0;
        const answer = await send(operation, name, bytesOf(document));
        if (official.accepts(REQUESTS[operation], document)) {
          assertAcpError(answer, 409, 'checkout_session_conflict');
          assert.deepEqual(received, [bytesOf(document)]);
        } else {
          assertAcpError(answer, 400, 'invalid_request_body');
          assert.deepEqual(received, []);
        }
      });
  }

  it('error_400_…: of a merchant’s errors only the demand of 3D Secure is passed on, with the gateway’s own message', async () => {
    const errors = examples().filter(({ name }) => name.includes('error_400_'));
    assert.ok(errors.length >= 2);
    for (const { name, document } of errors) {
      reply = { status: 400, body: bytesOf(document) };
      const answer = await send('completeCheckoutSession', name, JSON.stringify(RIGHT.completeCheckoutSession));
      const code = document['code'] === 'requires_3ds' ? 'requires_3ds' : 'invalid_request_body';
      assert.notEqual(assertAcpError(answer, 422, code)['message'], document['message']);
    }
  });

  it('are as many as this spec knows', () => {
    const looked = examples().filter(({ name }) => operationOf(name) !== undefined);
    assert.ok(looked.length >= 29, `${looked.length}: ${looked.map(({ name }) => name)}`);
  });
});

/** With white space that no serialiser of ours would write. */
function bytesOf(document: JsonObject): Buffer {
  return Buffer.from(`${JSON.stringify(document, null, 3)}\r\n`);
}

/** Of which call an example is a part; undefined for those of other services. */
function operationOf(name: string): Operation | undefined {
  const local = name.split(' ').at(-1) ?? '';
  if (/^(?:response|request)$/.test(local) || /^create_/.test(local)) return 'createCheckoutSession';
  if (/^update_/.test(local)) return 'updateCheckoutSession';
  if (/^complete_/.test(local)) return 'completeCheckoutSession';
  if (/^cancel_/.test(local)) return 'cancelCheckoutSession';
  return /^(?:get_|checkout_session_)/.test(local) ? 'getCheckoutSession' : undefined;
}

/** Every example of the checkout service, by file and name. */
function examples(): readonly { readonly name: string; readonly document: JsonObject }[] {
  if (skip !== false) return [];
  const discounts = readdirSync(join(FOLDER, 'discount-extension')).map((file) => `discount-extension/${file}`);
  const files = ['examples.agentic_checkout.json', 'examples.multi_item_checkout.json', ...discounts];
  return files.flatMap((file) => {
    const members = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as JsonObject;
    return Object.entries(members).flatMap(([name, document]) =>
      isObject(document) ? [{ name: `${file} ${name}`, document }] : [],
    );
  });
}
