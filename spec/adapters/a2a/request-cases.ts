import { type Headers, type Members, message, sendMessage } from './post.ts';

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
export const REFUSED: readonly (readonly [
  name: string,
  request: Members,
  refusal: ExpectedRefusal,
  headers?: Headers,
])[] = [
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
export const LEGAL: readonly (readonly [name: string, request: Members, headers?: Headers])[] = [
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
