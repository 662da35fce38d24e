import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dial, exchange, received } from '../../server/http/raw.ts';
import { createHead, refusalIn } from './raw.ts';
import { askAcp, assertAcpError, CART, sharedCheckoutTestbed } from './testbed.ts';

const MAX = 262_144;
const TEXT = JSON.stringify(CART);

const open = sharedCheckoutTestbed();

const create = (body: string | Buffer) => askAcp(open.gateway.url, { body });
/** A valid create with white space up to so many bytes. */
const padded = (bytes: number): string => TEXT + ' '.repeat(bytes - TEXT.length);
/**
 * A valid create whose metadata has so many levels, those of the document and of `metadata` among
 * them.
 */
const nested = (levels: number): string =>
  `${TEXT.slice(0, -1)},"metadata":${'{"a":'.repeat(levels - 2)}{}${'}'.repeat(levels - 2)}}`;

describe('the body of a checkout call', () => {
  it('may have 262,144 bytes', async () => assert.equal((await create(padded(MAX))).status, 201));
  it('is too large with one more', async () =>
    void assertAcpError(await create(padded(MAX + 1)), 413, 'request_body_too_large'));
  it('is too large with one more although its length is not declared', async () => {
    const chunks = [
      createHead(['Transfer-Encoding: chunked']),
      `${(MAX + 1).toString(16)}\r\n${padded(MAX + 1)}\r\n0\r\n\r\n`,
    ];
    assert.deepEqual(refusalIn(await exchange(open.gateway.url, chunks)), {
      status: 413,
      code: 'request_body_too_large',
    });
  });
  it('may be 64 levels deep', async () => assert.equal((await create(nested(64))).status, 201));
  it('is refused as JSON with 65', async () => void assertAcpError(await create(nested(65)), 400, 'invalid_json'));
  it('is refused as JSON with 5,000, with the same error', async () =>
    void assertAcpError(await create(nested(5_000)), 400, 'invalid_json'));

  const unreadable: readonly (readonly [string, string | Buffer])[] = [
    ['is empty', ''],
    ['is white space', '  '],
    ['breaks off', TEXT.slice(0, -1)],
    ['is followed by something', `${TEXT}x`],
    ['begins with a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(TEXT)])],
    ['is UTF-16', Buffer.from(TEXT, 'utf16le')],
    ['is Latin-1', Buffer.from(`${TEXT.slice(0, -1)},"locale":"é"}`, 'latin1')],
    ['has a member twice', `${TEXT.slice(0, -1)},"currency":"eur"}`],
    ['has a member twice, once in escapes', `${TEXT.slice(0, -1)},"currenc\\u0079":"eur"}`],
    ['has a lone surrogate', `${TEXT.slice(0, -1)},"locale":"\\ud800"}`],
    ['has a number that a double cannot hold', `${TEXT.slice(0, -1)},"metadata":{"n":9007199254740993}}`],
  ];
  for (const [what, body] of unreadable)
    it(`is refused when it ${what}`, async () => void assertAcpError(await create(body), 400, 'invalid_json'));

  for (const body of ['null', '[]', '"text"', '7'])
    it(`is an object, and not ${body}`, async () => {
      const document = assertAcpError(await create(body), 400, 'invalid_request_body');
      assert.equal(document['param'], '$');
    });

  it('is refused with the path that does not match, and no value of it', async () => {
    const answer = await create(
      '{"line_items":[{"id":"secret-1","quantity":"secret-2"}],"currency":"usd","capabilities":{}}',
    );
    const document = assertAcpError(answer, 400, 'invalid_request_body');
    assert.equal(document['param'], '$.line_items[0].quantity');
    assert.doesNotMatch(answer.text, /secret/);
  });

  it('reaches the backend in its own bytes', async () => {
    const body = ' {"currency" : "us\\u0064", "line_items":[{"id":"item_1","unit_amount":1.0}],\n"capabilities":{}}  ';
    const arrived = open.backend.arrived();
    assert.equal((await create(body)).status, 201);
    assert.equal((await arrived).body.toString(), body);
  });

  it('gets no 100 Continue when it would be refused', async () => {
    const socket = await dial(open.gateway.url);
    const answer = received(socket);
    socket.write(createHead([`Content-Length: ${MAX + 1}`, 'Expect: 100-continue']));
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(refusalIn(answer()).status, 413);
  });

  it('that breaks off leaves no claim behind', async () => {
    const socket = await dial(open.gateway.url);
    socket.write(
      `${createHead(['Idempotency-Key: broken-off', `Content-Length: ${TEXT.length}`])}${TEXT.slice(0, 10)}`,
    );
    socket.end();
    await new Promise((resolve) => socket.resume().once('close', resolve));
    const other = { ...CART, currency: 'eur' };
    const answer = await askAcp(open.gateway.url, { headers: { 'idempotency-key': 'broken-off' }, body: other });
    assert.equal(answer.status, 201);
  });
});

describe('a cancel', () => {
  const session = async (): Promise<string> => (JSON.parse((await create(TEXT)).text) as { id: string }).id;

  for (const [what, headers] of [
    ['without a body and without a content type', { 'content-type': undefined }],
    ['with a content type for nothing', {}],
  ] as const)
    it(`may come ${what}, and reaches the backend without either`, async () => {
      const path = `/checkout_sessions/${await session()}/cancel`;
      const arrived = open.backend.arrived({ operation: 'cancelCheckoutSession' });
      const answer = await askAcp(open.gateway.url, { path, headers, body: '' });
      assert.equal(answer.status, 200, answer.text);
      const call = await arrived;
      assert.equal(call.body.length, 0);
      assert.equal(call.headers['content-type'], undefined);
    });

  it('without a body is the same call as one with an empty object', async () => {
    const path = `/checkout_sessions/${await session()}/cancel`;
    const headers = { 'idempotency-key': `cancel ${path}` };
    assert.equal((await askAcp(open.gateway.url, { path, headers, body: '' })).status, 200);
    const again = await askAcp(open.gateway.url, { path, headers, body: '{ }' });
    assert.equal(again.headers['idempotent-replayed'], 'true');
  });

  it('with a body needs a content type', async () => {
    const path = `/checkout_sessions/${await session()}/cancel`;
    const headers = { 'content-type': undefined };
    assertAcpError(await askAcp(open.gateway.url, { path, headers, body: '{}' }), 415, 'unsupported_media_type');
    const chunked = [
      createHead(['Transfer-Encoding: chunked'])
        .replace('/acp/checkout_sessions ', `/acp${path} `)
        .replace(/Content-Type: .*\r\n/, ''),
      '2\r\n{}\r\n0\r\n\r\n',
    ];
    assert.equal(refusalIn(await exchange(open.gateway.url, chunked)).status, 415);
  });
});

describe('complete and update', () => {
  for (const path of ['/checkout_sessions/cs_1', '/checkout_sessions/cs_1/complete'])
    it(`need a body: ${path}`, async () => {
      const { message } = assertAcpError(await askAcp(open.gateway.url, { path, body: '' }), 400, 'invalid_json');
      assert.equal(message, 'The body is empty; it must be a JSON object.');
    });
});
