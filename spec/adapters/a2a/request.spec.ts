import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { readRequest } from '../../../src/adapters/a2a/request.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { errorOf, message, postA2a, sendMessage, taskOf, VERSION } from './post.ts';
import { LEGAL, REFUSED } from './request-cases.ts';

/** Ids that a request may have; each must come back with its JSON type. */
const IDS = ['a', 7, 0] as const;
const ENABLED = { protocols: { a2a: { enabled: true } } };
const STRICT = { protocols: { a2a: { enabled: true, errorProfile: 'spec' } } };

describe('the checks of a request', () => {
  let testbed: Testbed;
  let strict: TestGateway;
  let base: string;
  before(async () => {
    testbed = await openTestbed({ overrides: ENABLED });
    const { chain, backend } = testbed;
    const facilitator = { mode: 'local' } as const;
    strict = await openGateway({ chain, backendUrl: backend.url, facilitator, overrides: STRICT });
    base = testbed.gateway.url;
  });
  after(async () => {
    await strict?.close();
    await testbed?.close();
  });

  for (const [name, request, { code, specCode = code, reason, field }, headers = VERSION] of REFUSED) {
    for (const id of IDS)
      it(`${name}: ${code} for id ${JSON.stringify(id)}, under HTTP 200`, async () => {
        const error = errorOf(await postA2a(base, { ...request, id }, headers), id);
        assert.equal(error.code, code, JSON.stringify(error));
        assert.equal(error.data.at(-1)?.reason, reason);
        assert.equal(error.data[0]?.fieldViolations?.[0]?.field, field);
      });
    it(`${name}: ${specCode} in the profile spec, with the same reason`, async () => {
      const error = errorOf(await postA2a(strict.url, { ...request, id: 1 }, headers), 1);
      assert.equal(error.code, specCode);
      assert.equal(error.data.at(-1)?.reason, reason);
    });
    for (const [what, id] of [
      ['null', null],
      ['missing', undefined],
    ] as const)
      it(`${name}: -32600 before anything else when the id is ${what}`, async () => {
        const error = errorOf(await postA2a(base, { ...request, id }, headers), null);
        assert.equal(error.code, -32600);
      });
  }

  for (const [name, request, headers = VERSION] of LEGAL)
    for (const id of IDS)
      it(`11 serves ${name}, id ${JSON.stringify(id)}`, async () => {
        const task = taskOf(await postA2a(base, { ...request, id }, headers), id);
        assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
      });

  it('6 ignores a version in the query', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), {}, '/a2a?A2A-Version=1.0'), 1);
    assert.equal(error.data.at(-1)?.reason, 'VERSION_NOT_SUPPORTED');
  });

  it('6 names method and header of 1.0 to a client of 0.3', async () => {
    const { message: text } = errorOf(
      await postA2a(base, { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }, {}),
      1,
    );
    assert.match(text, /SendMessage, with the header A2A-Version: 1\.0/);
  });

  it('6 names the version that was requested, and the one that is served', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), { 'a2a-version': '0.3' }), 1);
    assert.equal(error.data[0]?.metadata?.['requested'], '0.3');
    assert.equal(error.data[0]?.metadata?.['supportedVersions'], '1.0');
  });

  for (const [what, body, code] of [
    ['no JSON', '{"jsonrpc":', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a batch', [sendMessage(message('cities'))], -32600],
    ['an empty batch', [], -32600],
    ['a text', '"SendMessage"', -32600],
    ['null', 'null', -32600],
  ] as const)
    it(`3 and 4 ${what} is ${code} with id null`, async () => {
      assert.equal(errorOf(await postA2a(base, body), null).code, code);
    });

  for (const [what, params] of [
    ['a member named twice', '{"message":1,"message":2}'],
    ['a name that reaches a prototype', '{"__proto__":{}}'],
    ['a number beyond a double', '{"message":9007199254740993}'],
    ['more levels than the parser allows', `${'['.repeat(70)}${']'.repeat(70)}`],
  ])
    for (const id of IDS)
      it(`4 ${what} is -32600 for id ${JSON.stringify(id)}`, async () => {
        const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"SendMessage","params":${params}}`;
        assert.equal(errorOf(await postA2a(base, body), id).code, -32600);
      });

  for (const id of [true, {}, ['a']])
    it(`5 refuses the id ${JSON.stringify(id)}`, async () => {
      assert.equal(errorOf(await postA2a(base, { ...sendMessage(message('cities')), id }), null).code, -32600);
    });

  it('5 a notification runs nothing', async () => {
    const { id: _, ...notification } = sendMessage(message('cities'));
    const before = testbed.backend.requests.length;
    assert.equal(errorOf(await postA2a(base, notification), null).code, -32600);
    assert.equal(testbed.backend.requests.length, before);
  });

  it('7 ListTasks gives an empty list in the profile spec only', async () => {
    const request = { jsonrpc: '2.0', id: 0, method: 'ListTasks', params: { pageSize: 10 } };
    const error = errorOf(await postA2a(base, request), 0);
    assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'UNSUPPORTED_OPERATION']);
    const { result } = JSON.parse((await postA2a(strict.url, request)).text) as { result: unknown };
    assert.deepEqual(result, { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  });
});

const HEADERS = {
  version: { kind: 'single', value: '1.0' },
  proof: { kind: 'none' },
  mandate: { kind: 'none' },
} as const;
const KINDS: readonly string[] = ['message', 'answered', 'refused'];

function read(request: unknown) {
  const reading = readRequest(Buffer.from(JSON.stringify(request)), HEADERS, 'gateway');
  assert.ok(KINDS.includes(reading.kind));
  return reading;
}

/** The path of names to every value of a document. */
function paths(value: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  if (value === null || typeof value !== 'object') return [at];
  return [at, ...Object.entries(value).flatMap(([name, member]) => paths(member, [...at, name]))];
}

function replaced(value: unknown, [name, ...rest]: readonly string[], by: unknown): unknown {
  if (name === undefined) return by;
  const members = value as Record<string, unknown>;
  if (Array.isArray(value))
    return value.map((item: unknown, at) => (`${at}` === name ? replaced(item, rest, by) : item));
  return { ...members, [name]: replaced(members[name], rest, by) };
}

describe('the reading of a request', () => {
  const requests = [...REFUSED, ...LEGAL].map(([, request]) => request);

  it('throws for no value in any position of a message', () => {
    fc.assert(
      fc.property(fc.constantFrom(...requests), fc.nat(), fc.jsonValue({ maxDepth: 3 }), (request, pick, value) => {
        const positions = paths({ id: 1, ...request });
        read(replaced({ id: 1, ...request }, positions[pick % positions.length] ?? [], value));
      }),
      { numRuns: 2_000 },
    );
  });

  it('echoes every id that a request may have, with its type', () => {
    const ids = fc.oneof(fc.integer(), fc.string({ unit: 'binary' }), fc.constantFrom(0, 1.5, ''));
    fc.assert(
      fc.property(fc.constantFrom(...requests), ids, (request, id) => {
        assert.equal(read({ ...request, id }).id, id);
      }),
    );
  });

  it('gives null for any other id', () => {
    const objects = fc.dictionary(fc.string(), fc.nat());
    const ids = fc.oneof(fc.constantFrom(null, true, false), fc.array(fc.jsonValue()), objects);
    fc.assert(
      fc.property(fc.constantFrom(...requests), ids, (request, id) => {
        assert.equal(read({ ...request, id }).id, null);
      }),
    );
  });

  it('refuses random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.equal(readRequest(bytes, HEADERS, 'gateway').kind, 'refused');
      }),
    );
  });
});
