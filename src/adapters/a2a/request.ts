/** Reads a JSON-RPC request of A2A with its headers, check by check, up to the message in it. */

import { isObject, type Json } from '../../json/types.ts';
import type { HeaderReading } from '../../server/http/headers.ts';
import { PARSE_ERROR, type RpcId, readBody } from '../json-rpc/message.ts';
import { type CallMessage, type CarriedInHeaders, readSendMessage } from './message.ts';
import type { ErrorProfile, Refusal, RefusalReason } from './refusal.ts';

interface RequestHeaders extends CarriedInHeaders {
  /** `A2A-Version` (A2A 1.0, section 3.6). A query parameter of that name is ignored. */
  readonly version: HeaderReading;
}

/** The reading of a POST. `answered`: the result is the same for every request. */
type A2aReading =
  | { readonly kind: 'message'; readonly id: RpcId; readonly message: CallMessage }
  | { readonly kind: 'answered'; readonly id: RpcId; readonly result: string }
  | { readonly kind: 'refused'; readonly id: RpcId | null; readonly refusal: Refusal };

/** Patch versions do not matter (section 3.6). */
const VERSION = /^1\.0(?:\.[0-9]{1,9})?$/;
/** Longest part of a caller's version that an error repeats, characters. */
const SHOWN_VERSION = 16;

/** The other methods of A2A 1.0 (section 9.4), and why each is refused. No task is ever kept. */
const OTHER_METHODS: ReadonlyMap<string, RefusalReason> = new Map([
  ['SendStreamingMessage', 'UNSUPPORTED_OPERATION'],
  ['SubscribeToTask', 'UNSUPPORTED_OPERATION'],
  ['GetTask', 'TASK_NOT_FOUND'],
  ['CancelTask', 'TASK_NOT_FOUND'],
  ['ListTasks', 'UNSUPPORTED_OPERATION'],
  ['CreateTaskPushNotificationConfig', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  ['GetTaskPushNotificationConfig', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  ['ListTaskPushNotificationConfigs', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  ['DeleteTaskPushNotificationConfig', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  ['GetExtendedAgentCard', 'UNSUPPORTED_OPERATION'],
]);
const NO_LOOKUP = 'Tasks cannot be looked up or canceled here: SendMessage answers with the whole task.';
/** The empty list that `ListTasks` gives in the profile `spec`. */
const NO_TASKS = '{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}';

/** Checks JSON, request object, version, method and parameters, in this order (a2a 3). */
export function readRequest(bytes: Uint8Array, headers: RequestHeaders, profile: ErrorProfile): A2aReading {
  const body = readBody(bytes);
  if (!body.ok) {
    const reason = body.code === PARSE_ERROR ? 'MALFORMED_JSON' : 'INVALID_REQUEST';
    return refused(body.id, { reason, message: body.message });
  }
  const request = body.value;
  if (Array.isArray(request)) return refused(null, invalid('Batches are not served. Send one request in each POST.'));
  if (!isObject(request)) return refused(null, invalid('The body must be one JSON-RPC object.'));
  const { id, method } = request;
  const known = isId(id) ? id : null;
  if (request['jsonrpc'] !== '2.0') return refused(known, invalid('The member jsonrpc must be "2.0".'));
  if (typeof method !== 'string' || method === '')
    return refused(known, invalid('The member method must be a text that is not empty.'));
  // A notification must not run: it could spend money, and has no answer.
  if (!isId(id)) return refused(null, invalid('The member id must be a string or a number.'));
  const { version } = headers;
  if (version.kind !== 'single' || !VERSION.test(version.value)) return refused(id, wrongVersion(version, method));
  return readMethod(id, method, request['params'], headers, profile);
}

function readMethod(
  id: RpcId,
  method: string,
  params: Json | undefined,
  headers: CarriedInHeaders,
  profile: ErrorProfile,
): A2aReading {
  if (method === 'SendMessage') {
    const message = readSendMessage(params, headers);
    return message.kind === 'refused' ? refused(id, message.refusal) : { kind: 'message', id, message };
  }
  if (method === 'ListTasks' && profile === 'spec') return { kind: 'answered', id, result: NO_TASKS };
  const reason = OTHER_METHODS.get(method) ?? 'METHOD_NOT_FOUND';
  return refused(id, reason === 'TASK_NOT_FOUND' ? { reason, message: NO_LOOKUP } : { reason });
}

/** A missing header means 0.3 (section 3.6.2), whose methods have names like `message/send`. */
function wrongVersion(version: HeaderReading, method: string): Refusal {
  const requested = version.kind === 'single' ? version.value.slice(0, SHOWN_VERSION) : undefined;
  const facts = { ...(requested === undefined ? {} : { requested }), supportedVersions: '1.0' };
  const message = 'This agent serves A2A 1.0: call SendMessage, with the header A2A-Version: 1.0.';
  return { reason: 'VERSION_NOT_SUPPORTED', facts, ...(method.includes('/') ? { message } : {}) };
}

function invalid(message: string): Refusal {
  return { reason: 'INVALID_REQUEST', message };
}

function refused(id: RpcId | null, refusal: Refusal): A2aReading {
  return { kind: 'refused', id, refusal };
}

function isId(id: Json | undefined): id is RpcId {
  return typeof id === 'string' || typeof id === 'number';
}
