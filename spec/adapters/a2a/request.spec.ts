import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { readRequest } from '../../../src/adapters/a2a/request.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { errorOf, type Headers, type Members, message, postA2a, sendMessage, taskOf, VERSION } from './post.ts';

/** The refusal of a request; `code`: of the profile `gateway`. */
interface ExpectedRefusal {
  readonly code: number;
  /** Of the profile `spec`, where it differs. */
  readonly specCode?: number;
  readonly reason: string;
  /** The field of the violation, for -32602. */
  readonly field?: string;
}

const GOOD = sendMessage(message('cities'));
const method = (name: unknown): Members => ({ jsonrpc: '2.0', method: name, params: {} });
const changed = (changes: Members): Members => sendMessage(message('cities', {}, changes));
const part = (content: unknown): Members => changed({ parts: [content] });
const data = (content: unknown): Members => part({ data: content, mediaType: 'application/json' });

const INVALID = { code: -32600, reason: 'INVALID_REQUEST' } as const;
const WRONG_VERSION = { code: -32004, specCode: -32009, reason: 'VERSION_NOT_SUPPORTED' } as const;
const UNSUPPORTED = { code: -32004, reason: 'UNSUPPORTED_OPERATION' } as const;
const NO_TASK = { code: -32004, specCode: -32001, reason: 'TASK_NOT_FOUND' } as const;
const NO_PUSH = { code: -32004, specCode: -32003, reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' } as const;
const WRONG_CONTENT = { code: -32004, specCode: -32005, reason: 'CONTENT_TYPE_NOT_SUPPORTED' } as const;
const UNKNOWN = { code: -32601, reason: 'METHOD_NOT_FOUND' } as const;
const bad = (field: string) => ({ code: -32602, reason: 'INVALID_PARAMS', field }) as const;

/** Requests that a check of a2a 3 refuses; a name begins with the number of its check. */
const REFUSED: readonly (readonly [name: string, request: Members, refusal: ExpectedRefusal, headers?: Headers])[] = [
  ['5 jsonrpc is not 2.0', { ...GOOD, jsonrpc: '1.0' }, INVALID],
  ['5 jsonrpc is a number', { ...GOOD, jsonrpc: 2.0 }, INVALID],
  ['5 jsonrpc is missing', { method: 'SendMessage', params: {} }, INVALID],
  ['5 method is missing', { jsonrpc: '2.0', params: {} }, INVALID],
  ['5 method is empty', method(''), INVALID],
  ['5 method is no text', method(7), INVALID],
  ['5 before 6: no version either', method(7), INVALID, {}],

  ['6 no version', GOOD, WRONG_VERSION, {}],
  ['6 an empty version', GOOD, WRONG_VERSION, { 'a2a-version': '' }],
  ['6 version 0.3', GOOD, WRONG_VERSION, { 'a2a-version': '0.3' }],
  ['6 version 1.1', GOOD, WRONG_VERSION, { 'a2a-version': '1.1' }],
  ['6 version 1.0.x', GOOD, WRONG_VERSION, { 'a2a-version': '1.0.x' }],
  ['6 two versions', GOOD, WRONG_VERSION, { 'a2a-version': '1.0, 0.3' }],
  ['6 before 8: an unknown method without version', method('tasks/get'), WRONG_VERSION, {}],

  ['7 SendStreamingMessage', method('SendStreamingMessage'), UNSUPPORTED],
  ['7 SubscribeToTask', method('SubscribeToTask'), UNSUPPORTED],
  ['7 GetTask', method('GetTask'), NO_TASK],
  ['7 CancelTask', method('CancelTask'), NO_TASK],
  ['7 CreateTaskPushNotificationConfig', method('CreateTaskPushNotificationConfig'), NO_PUSH],
  ['7 GetTaskPushNotificationConfig', method('GetTaskPushNotificationConfig'), NO_PUSH],
  ['7 ListTaskPushNotificationConfigs', method('ListTaskPushNotificationConfigs'), NO_PUSH],
  ['7 DeleteTaskPushNotificationConfig', method('DeleteTaskPushNotificationConfig'), NO_PUSH],
  ['7 GetExtendedAgentCard', method('GetExtendedAgentCard'), UNSUPPORTED],

  ['8 the legacy message/send', { ...GOOD, method: 'message/send' }, UNKNOWN],
  ['8 a method in another case', { ...GOOD, method: 'sendMessage' }, UNKNOWN],
  ['8 a member of every object', method('constructor'), UNKNOWN],

  ['9 no params', { jsonrpc: '2.0', method: 'SendMessage' }, bad('params')],
  ['9 params is a list', { ...GOOD, params: [] }, bad('params')],
  ['9 no message', { ...GOOD, params: {} }, bad('message')],
  ['9 message is a text', { ...GOOD, params: { message: 'hello' } }, bad('message')],
  ['9 no messageId', changed({ messageId: undefined }), bad('message.messageId')],
  ['9 messageId is empty', changed({ messageId: '' }), bad('message.messageId')],
  ['9 messageId of 257 characters', changed({ messageId: 'm'.repeat(257) }), bad('message.messageId')],
  ['9 messageId is a number', changed({ messageId: 1 }), bad('message.messageId')],
  ['9 the role of an agent', changed({ role: 'ROLE_AGENT' }), bad('message.role')],
  ['9 the role of 0.3', changed({ role: 'user' }), bad('message.role')],
  ['9 no role', changed({ role: undefined }), bad('message.role')],
  ['9 no parts', changed({ parts: undefined }), bad('message.parts')],
  ['9 parts is empty', changed({ parts: [] }), bad('message.parts')],
  ['9 parts is an object', changed({ parts: { data: {} } }), bad('message.parts')],
  ['9 a part is a text', part('hello'), bad('message.parts')],
  ['9 a part without data', part({ mediaType: 'application/json' }), bad('message.parts[0]')],
  ['9 data is null', data(null), bad('message.parts[0]')],
  ['9 a part with data and text', part({ data: {}, text: 'hello' }), bad('message.parts[0]')],
  ['9 data is a list', data([]), bad('message.parts[0].data')],
  ['9 data is a text', data('cities'), bad('message.parts[0].data')],
  ['9 no resource', data({ input: {} }), bad('message.parts[0].data.resource')],
  ['9 resource is empty', data({ resource: '' }), bad('message.parts[0].data.resource')],
  ['9 resource is a number', data({ resource: 1 }), bad('message.parts[0].data.resource')],
  ['9 input is a list', data({ resource: 'cities', input: [] }), bad('message.parts[0].data.input')],
  ['9 input is null', data({ resource: 'cities', input: null }), bad('message.parts[0].data.input')],
  [
    '9 the input beside the member input',
    data({ resource: 'free_market_report', city: 'Berlin' }),
    bad('message.parts[0].data.input'),
  ],
  [
    '9 the payment beside the input',
    data({ resource: 'market_report', input: { city: 'Berlin' }, _payment: 'x' }),
    bad('message.parts[0].data._payment'),
  ],
  ['9 mediaType is a number', part({ data: {}, mediaType: 1 }), bad('message.parts[0].mediaType')],
  ['9 metadata is a list', changed({ metadata: [] }), bad('message.metadata')],
  ['9 taskId is a number', changed({ taskId: 1 }), bad('message.taskId')],
  ['9 contextId is a number', changed({ contextId: 1 }), bad('message.contextId')],

  ['10 a text part', part({ text: 'hello' }), WRONG_CONTENT],
  ['10 a raw part', part({ raw: 'AAAA' }), WRONG_CONTENT],
  ['10 a url part', part({ url: 'https://example.com/a' }), WRONG_CONTENT],
  ['10 a file part of 0.3', part({ kind: 'file', file: { uri: 'https://a.example' } }), WRONG_CONTENT],
  ['10 another media type', part({ data: {}, mediaType: 'text/csv' }), WRONG_CONTENT],
  ['10 two parts', changed({ parts: [{ data: {} }, { text: 'hello' }] }), UNSUPPORTED],
  ['10 a context to continue', changed({ contextId: 'c' }), UNSUPPORTED],
  ['10 a task to continue', changed({ taskId: 't' }), NO_TASK],
  ['10 a task and a context to continue', changed({ taskId: 't', contextId: 'c' }), NO_TASK],
  ['10 a task to pay for', changed({ taskId: 't', metadata: { 'x402.payment.payload': {} } }), NO_TASK],
  ['10 tasks to refer to', changed({ referenceTaskIds: ['t'] }), UNSUPPORTED],
  [
    '10 push notifications',
    {
      ...GOOD,
      params: {
        message: message('cities'),
        configuration: { taskPushNotificationConfig: { url: 'https://a.example' } },
      },
    },
    NO_PUSH,
  ],
];

/** Legal requests that must be served. */
const LEGAL: readonly (readonly [name: string, request: Members, headers?: Headers])[] = [
  ['a patch version', GOOD, { 'a2a-version': '1.0.1' }],
  ['a messageId of 256 characters', changed({ messageId: 'm'.repeat(256) })],
  ['no input at all', data({ resource: 'cities' })],
  ['no media type', part({ data: { resource: 'cities', input: {} } })],
  ['an empty media type', part({ data: { resource: 'cities' }, mediaType: '' })],
  ['a +json media type', part({ data: { resource: 'cities' }, mediaType: 'application/a2a+json' })],
  [
    'what the official client sends for absent members',
    changed({ taskId: '', contextId: '', referenceTaskIds: [], extensions: [] }),
  ],
  ['members that are null', changed({ metadata: null, taskId: null, contextId: null })],
  ['unknown members', { ...changed({ mood: 'good' }), params: { message: message('cities'), tenant: 'x', more: 1 } }],
  [
    'returnImmediately',
    { ...GOOD, params: { message: message('cities'), configuration: { returnImmediately: true } } },
  ],
];

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

  for (const [name, request, { code, specCode = code, reason, field }, headers = VERSION] of REFUSED)
    it(`${name}: ${code} under HTTP 200, and ${specCode} in the profile spec`, async () => {
      for (const id of IDS)
        for (const [url, expected] of [
          [base, code],
          [strict.url, specCode],
        ] as const) {
          const error = errorOf(await postA2a(url, { ...request, id }, headers), id);
          assert.equal(error.code, expected, JSON.stringify(error));
          assert.equal(error.data.at(-1)?.reason, reason);
          assert.equal(error.data[0]?.fieldViolations?.[0]?.field, field);
        }
      for (const id of [null, undefined]) {
        const error = errorOf(await postA2a(base, { ...request, id }, headers), null);
        assert.equal(error.code, -32600, 'before anything else');
      }
    });

  for (const [name, request, headers = VERSION] of LEGAL)
    it(`11 serves ${name}, with every id`, async () => {
      for (const id of IDS) {
        const task = taskOf(await postA2a(base, { ...request, id }, headers), id);
        assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
      }
    });

  it('6 ignores a version in the query', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), {}, '/a2a?A2A-Version=1.0'), 1);
    assert.equal(error.data.at(-1)?.reason, 'VERSION_NOT_SUPPORTED');
  });

  it('6 names the version that is served, and to a client of 0.3 its method and header', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), { 'a2a-version': '0.3' }), 1);
    assert.equal(error.data[0]?.metadata?.['requested'], '0.3');
    assert.equal(error.data[0]?.metadata?.['supportedVersions'], '1.0');
    const old = { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} };
    assert.match(errorOf(await postA2a(base, old, {}), 1).message, /SendMessage, with the header A2A-Version: 1\.0/);
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
    it(`4 ${what} is -32600, with the id`, async () => {
      for (const id of IDS) {
        const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"SendMessage","params":${params}}`;
        assert.equal(errorOf(await postA2a(base, body), id).code, -32600);
      }
    });

  it('5 refuses other ids, and a notification, and runs nothing', async () => {
    const before = testbed.backend.requests.length;
    for (const id of [true, {}, ['a'], undefined])
      assert.equal(errorOf(await postA2a(base, { ...sendMessage(message('cities')), id }), null).code, -32600);
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

  it('refuses random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.equal(readRequest(bytes, HEADERS, 'gateway').kind, 'refused');
      }),
    );
  });
});
