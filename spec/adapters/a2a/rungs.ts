import { type Headers, type Members, message, sendMessage } from './post.ts';

/** Ids that a request may have; each must come back with its JSON type. */
export const IDS = ['a', 7, 0] as const;

/**
 * One rung of the ladder: what is sent, and what is wrong with it. `code`: of the profile
 * `gateway`.
 */
export interface Rung {
  readonly name: string;
  readonly request: Members;
  readonly headers?: Headers;
  readonly code: number;
  /** Of the profile `spec`, where it differs. */
  readonly specCode?: number;
  readonly reason: string;
  /** Of the violation, for -32602. */
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

/** The checks of a2a 3; a name begins with the number of its check. */
export const RUNGS: readonly Rung[] = [
  { name: '5 jsonrpc is not 2.0', request: { ...GOOD, jsonrpc: '1.0' }, ...INVALID },
  { name: '5 jsonrpc is a number', request: { ...GOOD, jsonrpc: 2.0 }, ...INVALID },
  { name: '5 jsonrpc is missing', request: { method: 'SendMessage', params: {} }, ...INVALID },
  { name: '5 method is missing', request: { jsonrpc: '2.0', params: {} }, ...INVALID },
  { name: '5 method is empty', request: method(''), ...INVALID },
  { name: '5 method is no text', request: method(7), ...INVALID },
  { name: '5 before 6: no version either', request: method(7), headers: {}, ...INVALID },

  { name: '6 no version', request: GOOD, headers: {}, ...WRONG_VERSION },
  { name: '6 an empty version', request: GOOD, headers: { 'a2a-version': '' }, ...WRONG_VERSION },
  { name: '6 version 0.3', request: GOOD, headers: { 'a2a-version': '0.3' }, ...WRONG_VERSION },
  { name: '6 version 1.1', request: GOOD, headers: { 'a2a-version': '1.1' }, ...WRONG_VERSION },
  { name: '6 version 1.0.x', request: GOOD, headers: { 'a2a-version': '1.0.x' }, ...WRONG_VERSION },
  { name: '6 two versions', request: GOOD, headers: { 'a2a-version': '1.0, 0.3' }, ...WRONG_VERSION },
  {
    name: '6 before 8: an unknown method without version',
    request: method('tasks/get'),
    headers: {},
    ...WRONG_VERSION,
  },

  { name: '7 SendStreamingMessage', request: method('SendStreamingMessage'), ...UNSUPPORTED },
  { name: '7 SubscribeToTask', request: method('SubscribeToTask'), ...UNSUPPORTED },
  { name: '7 GetTask', request: method('GetTask'), ...NO_TASK },
  { name: '7 CancelTask', request: method('CancelTask'), ...NO_TASK },
  { name: '7 CreateTaskPushNotificationConfig', request: method('CreateTaskPushNotificationConfig'), ...NO_PUSH },
  { name: '7 GetTaskPushNotificationConfig', request: method('GetTaskPushNotificationConfig'), ...NO_PUSH },
  { name: '7 ListTaskPushNotificationConfigs', request: method('ListTaskPushNotificationConfigs'), ...NO_PUSH },
  { name: '7 DeleteTaskPushNotificationConfig', request: method('DeleteTaskPushNotificationConfig'), ...NO_PUSH },
  { name: '7 GetExtendedAgentCard', request: method('GetExtendedAgentCard'), ...UNSUPPORTED },

  { name: '8 the legacy message/send', request: { ...GOOD, method: 'message/send' }, ...UNKNOWN },
  { name: '8 a method in another case', request: { ...GOOD, method: 'sendMessage' }, ...UNKNOWN },
  { name: '8 a member of every object', request: method('constructor'), ...UNKNOWN },

  { name: '9 no params', request: { jsonrpc: '2.0', method: 'SendMessage' }, ...bad('params') },
  { name: '9 params is a list', request: { ...GOOD, params: [] }, ...bad('params') },
  { name: '9 no message', request: { ...GOOD, params: {} }, ...bad('message') },
  { name: '9 message is a text', request: { ...GOOD, params: { message: 'hello' } }, ...bad('message') },
  { name: '9 no messageId', request: changed({ messageId: undefined }), ...bad('message.messageId') },
  { name: '9 messageId is empty', request: changed({ messageId: '' }), ...bad('message.messageId') },
  {
    name: '9 messageId of 257 characters',
    request: changed({ messageId: 'm'.repeat(257) }),
    ...bad('message.messageId'),
  },
  { name: '9 messageId is a number', request: changed({ messageId: 1 }), ...bad('message.messageId') },
  { name: '9 the role of an agent', request: changed({ role: 'ROLE_AGENT' }), ...bad('message.role') },
  { name: '9 the role of 0.3', request: changed({ role: 'user' }), ...bad('message.role') },
  { name: '9 no role', request: changed({ role: undefined }), ...bad('message.role') },
  { name: '9 no parts', request: changed({ parts: undefined }), ...bad('message.parts') },
  { name: '9 parts is empty', request: changed({ parts: [] }), ...bad('message.parts') },
  { name: '9 parts is an object', request: changed({ parts: { data: {} } }), ...bad('message.parts') },
  { name: '9 a part is a text', request: part('hello'), ...bad('message.parts') },
  { name: '9 a part without data', request: part({ mediaType: 'application/json' }), ...bad('message.parts[0]') },
  { name: '9 data is null', request: data(null), ...bad('message.parts[0]') },
  { name: '9 a part with data and text', request: part({ data: {}, text: 'hello' }), ...bad('message.parts[0]') },
  { name: '9 data is a list', request: data([]), ...bad('message.parts[0].data') },
  { name: '9 data is a text', request: data('cities'), ...bad('message.parts[0].data') },
  { name: '9 no resource', request: data({ input: {} }), ...bad('message.parts[0].data.resource') },
  { name: '9 resource is empty', request: data({ resource: '' }), ...bad('message.parts[0].data.resource') },
  { name: '9 resource is a number', request: data({ resource: 1 }), ...bad('message.parts[0].data.resource') },
  {
    name: '9 input is a list',
    request: data({ resource: 'cities', input: [] }),
    ...bad('message.parts[0].data.input'),
  },
  {
    name: '9 input is null',
    request: data({ resource: 'cities', input: null }),
    ...bad('message.parts[0].data.input'),
  },
  {
    name: '9 the input stands beside its place',
    request: data({ resource: 'free_market_report', city: 'Berlin' }),
    ...bad('message.parts[0].data.input'),
  },
  {
    name: '9 the payment stands beside the input',
    request: data({ resource: 'market_report', input: { city: 'Berlin' }, _payment: 'x' }),
    ...bad('message.parts[0].data._payment'),
  },
  { name: '9 mediaType is a number', request: part({ data: {}, mediaType: 1 }), ...bad('message.parts[0].mediaType') },
  { name: '9 metadata is a list', request: changed({ metadata: [] }), ...bad('message.metadata') },
  { name: '9 taskId is a number', request: changed({ taskId: 1 }), ...bad('message.taskId') },
  { name: '9 contextId is a number', request: changed({ contextId: 1 }), ...bad('message.contextId') },

  { name: '10 a text part', request: part({ text: 'hello' }), ...WRONG_CONTENT },
  { name: '10 a raw part', request: part({ raw: 'AAAA' }), ...WRONG_CONTENT },
  { name: '10 a url part', request: part({ url: 'https://example.com/a' }), ...WRONG_CONTENT },
  {
    name: '10 a file part of 0.3',
    request: part({ kind: 'file', file: { uri: 'https://a.example' } }),
    ...WRONG_CONTENT,
  },
  { name: '10 another media type', request: part({ data: {}, mediaType: 'text/csv' }), ...WRONG_CONTENT },
  { name: '10 two parts', request: changed({ parts: [{ data: {} }, { text: 'hello' }] }), ...UNSUPPORTED },
  { name: '10 a context to continue', request: changed({ contextId: 'c' }), ...UNSUPPORTED },
  { name: '10 a task to continue', request: changed({ taskId: 't' }), ...NO_TASK },
  { name: '10 a task and a context to continue', request: changed({ taskId: 't', contextId: 'c' }), ...NO_TASK },
  {
    name: '10 a task to pay for',
    request: changed({ taskId: 't', metadata: { 'x402.payment.payload': {} } }),
    ...NO_TASK,
  },
  {
    name: '10 a task to decline',
    request: changed({ taskId: 't', metadata: { 'x402.payment.status': 'payment-rejected' } }),
    ...NO_TASK,
  },
  { name: '10 tasks to refer to', request: changed({ referenceTaskIds: ['t'] }), ...UNSUPPORTED },
  {
    name: '10 push notifications',
    request: {
      ...GOOD,
      params: {
        message: message('cities'),
        configuration: { taskPushNotificationConfig: { url: 'https://a.example' } },
      },
    },
    ...NO_PUSH,
  },
];

/** Legal requests that must not be refused, whatever else they bring. */
export const LEGAL: readonly (readonly [name: string, request: Members, headers?: Headers])[] = [
  ['a patch version', GOOD, { 'a2a-version': '1.0.1' }],
  ['a messageId of 256 characters', changed({ messageId: 'm'.repeat(256) })],
  ['no input at all', data({ resource: 'cities' })],
  ['no media type', part({ data: { resource: 'cities', input: {} } })],
  ['an empty media type', part({ data: { resource: 'cities' }, mediaType: '' })],
  ['a +json media type', part({ data: { resource: 'cities' }, mediaType: 'application/a2a+json' })],
  [
    'what the official client sends for nothing',
    changed({ taskId: '', contextId: '', referenceTaskIds: [], extensions: [] }),
  ],
  ['members that are null', changed({ metadata: null, taskId: null, contextId: null })],
  [
    'members that nobody knows',
    { ...changed({ mood: 'good' }), params: { message: message('cities'), tenant: 'x', more: 1 } },
  ],
  [
    'returnImmediately',
    { ...GOOD, params: { message: message('cities'), configuration: { returnImmediately: true } } },
  ],
];
