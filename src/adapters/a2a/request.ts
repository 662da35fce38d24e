/**
 * Reads a JSON-RPC request of A2A with its headers, check by check, up to the call in its message;
 * a refusal becomes a JSON-RPC error.
 */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import type { CarriedMandate } from '../../mandates/ap2/envelope.ts';
import type { CarriedProof } from '../../payments/settlement/verifier.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/keywords.ts';
import { type HeaderReading, isJsonType } from '../../server/http/request.ts';
import { memberMandate, memberProof, oneMandate, oneProof } from '../extract-credentials.ts';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  type RpcError,
  type RpcId,
  readBody,
} from '../json-rpc/message.ts';
import { PAYMENT_PAYLOAD } from './response-writer.ts';

/**
 * The codes for the parts of A2A that this gateway does not serve: in `gateway` (the published
 * interface) all are -32004, in `spec` each is that of A2A 1.0 (section 5.4). Reasons are the same.
 */
export type ErrorProfile = 'gateway' | 'spec';

/** The one code of the `gateway` profile for the parts of A2A that are not served. */
const UNSUPPORTED = -32004;

const REFUSALS = {
  MALFORMED_JSON: { code: PARSE_ERROR, message: 'Invalid JSON payload.' },
  INVALID_REQUEST: { code: INVALID_REQUEST, message: 'Request payload validation error.' },
  PAYLOAD_TOO_LARGE: { code: INVALID_REQUEST, message: 'The request body is too large.' },
  METHOD_NOT_FOUND: { code: METHOD_NOT_FOUND, message: 'Method not found. This agent serves SendMessage.' },
  INVALID_PARAMS: { code: INVALID_PARAMS, message: 'Invalid parameters.' },
  UNSUPPORTED_OPERATION: { code: UNSUPPORTED, specCode: -32004, message: 'This operation is not supported.' },
  VERSION_NOT_SUPPORTED: { code: UNSUPPORTED, specCode: -32009, message: 'Send the header A2A-Version: 1.0.' },
  PUSH_NOTIFICATION_NOT_SUPPORTED: {
    code: UNSUPPORTED,
    specCode: -32003,
    message: 'Push notifications are not supported.',
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    code: UNSUPPORTED,
    specCode: -32005,
    message: 'Send one data part: {"data": {"resource": ..., "input": {...}}, "mediaType": "application/json"}.',
  },
  TASK_NOT_FOUND: {
    code: UNSUPPORTED,
    specCode: -32001,
    message: 'No such task. Tasks are not kept; send a new message.',
  },
} as const;

/** The reason in `google.rpc.ErrorInfo`, equal in both profiles. */
type RefusalReason = keyof typeof REFUSALS;

/** A request that is not legal or not served. Never a commerce outcome: those are tasks. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** In place of the fixed phrase of the reason. */
  readonly message?: string;
  /** The member of the request that is wrong, and what it must be. */
  readonly violation?: { readonly field: string; readonly description: string };
  /** Further metadata. It repeats nothing of the request but the version. */
  readonly facts?: Readonly<Record<string, string>>;
}

/** Parameters that break the rules of SendMessage. `field`: a path from `params`. */
export function badParams(field: string, description: string): Refusal {
  return { reason: 'INVALID_PARAMS', violation: { field, description } };
}

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';
const DOMAIN = 'a2a-protocol.org';

/**
 * A refusal as JSON-RPC error. A2A 1.0, section 9.5: details are ProtoJSON of google.rpc types, and
 * metadata has strings only.
 */
export function rpcError(refusal: Refusal, profile: ErrorProfile, requestId: string): RpcError {
  const { reason, violation, facts } = refusal;
  const rule = REFUSALS[reason];
  const metadata = { requestId, ...facts };
  return {
    code: profile === 'spec' && 'specCode' in rule ? rule.specCode : rule.code,
    message:
      refusal.message ?? (violation === undefined ? rule.message : `${violation.field} ${violation.description}.`),
    data: [
      ...(violation === undefined ? [] : [{ '@type': BAD_REQUEST, fieldViolations: [violation] }]),
      { '@type': ERROR_INFO, reason, domain: DOMAIN, metadata },
    ],
  };
}

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

/**
 * The other methods of A2A 1.0 (section 9.4), and why each is refused: no task is ever kept. The
 * profile `spec` answers ListTasks instead.
 */
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

/** A message that calls a resource. */
interface CallMessage {
  readonly kind: 'call';
  readonly resourceId: string;
  readonly input: JsonObject;
  readonly proof: CarriedProof;
  readonly mandate: CarriedMandate;
}

type CalledResource = Pick<CallMessage, 'resourceId' | 'input'>;

/** The credentials in the headers of the request; a message has further places for them. */
interface CarriedInHeaders {
  readonly proof: CarriedProof;
  readonly mandate: CarriedMandate;
}

type Unread = { readonly kind: 'refused'; readonly refusal: Refusal };

/** Longest message id, characters (a2a 3). */
const MAX_MESSAGE_ID_LENGTH = 256;
/** Content of a part besides data, in 1.0 and before. */
const OTHER_CONTENT = ['text', 'raw', 'url', 'file'] as const;

/**
 * Reads `params` of SendMessage (A2A 1.0, section 3.1.1). Unknown members are legal and ignored.
 * Each message is a call of its own: one that names a task is refused.
 */
function readSendMessage(params: Json | undefined, headers: CarriedInHeaders): CallMessage | Unread {
  if (!isObject(params)) return unread(badParams('params', 'must be an object'));
  const { message, configuration } = params;
  if (!isObject(message)) return unread(badParams('message', 'must be an object'));
  const fault = messageFault(message) ?? unservedFault(message, configuration);
  if (fault !== undefined) return unread(fault);
  const parts = message['parts'] as readonly Json[];
  const metadata = isObject(message['metadata']) ? message['metadata'] : {};
  const input = inputOf(parts[0]);
  const proof = oneProof(memberProof(input?.[PAYMENT_MEMBER]), memberProof(metadata[PAYMENT_PAYLOAD]), headers.proof);
  if (proof.kind === 'conflicting')
    return unread(badParams(`message.metadata["${PAYMENT_PAYLOAD}"]`, 'must be the payment that the input carries'));
  const mandate = oneMandate(headers.mandate, memberMandate(input?.[AUTHORIZATION_MEMBER]));
  if (isNamed(message['taskId'])) return unread({ reason: 'TASK_NOT_FOUND', message: NOT_CONTINUED });
  if (isNamed(message['contextId']))
    return unread(unsupported('A context cannot be continued. Send the message without contextId.'));
  if (parts.length > 1) return unread(unsupported('A message must have exactly one part.'));
  const call = readPart(parts[0]);
  return 'reason' in call ? unread(call) : { kind: 'call', ...call, proof, mandate };
}

const NOT_CONTINUED =
  'Tasks end with their answer and are not continued. Send the whole message again, without taskId: resource and input, ' +
  `with the payment in metadata["${PAYMENT_PAYLOAD}"] or as base64 in input.${PAYMENT_MEMBER}.`;

/** The first break of the rules that A2A itself has for a Message. */
function messageFault(message: JsonObject): Refusal | undefined {
  const { messageId, role, parts, metadata } = message;
  if (typeof messageId !== 'string' || messageId === '' || messageId.length > MAX_MESSAGE_ID_LENGTH)
    return badParams('message.messageId', `must be a text of 1 to ${MAX_MESSAGE_ID_LENGTH} characters`);
  if (role !== 'ROLE_USER') return badParams('message.role', 'must be ROLE_USER');
  if (!Array.isArray(parts) || parts.length === 0) return badParams('message.parts', 'must be a list with one part');
  if (!parts.every((part: Json) => isObject(part))) return badParams('message.parts', 'must be a list of objects');
  if (metadata !== undefined && metadata !== null && !isObject(metadata))
    return badParams('message.metadata', 'must be an object');
  for (const name of ['taskId', 'contextId'] as const)
    if (!isAbsent(message[name]) && typeof message[name] !== 'string')
      return badParams(`message.${name}`, 'must be a text');
  return undefined;
}

/** Legal A2A that this gateway does not serve. */
function unservedFault(message: JsonObject, configuration: Json | undefined): Refusal | undefined {
  const { referenceTaskIds } = message;
  if (Array.isArray(referenceTaskIds) && referenceTaskIds.length > 0)
    return unsupported('Tasks are not kept, so none can be referred to.');
  if (isObject(configuration) && !isAbsent(configuration['taskPushNotificationConfig']))
    return { reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' };
  return undefined;
}

/** The resource and the input of the one data part. */
function readPart(part: Json | undefined): CalledResource | Refusal {
  const at = 'message.parts[0]';
  if (!isObject(part)) return badParams(at, 'must be an object');
  const others = OTHER_CONTENT.filter((name) => !isAbsent(part[name]));
  const { data, mediaType } = part;
  if (isAbsent(data))
    return others.length > 0 ? { reason: 'CONTENT_TYPE_NOT_SUPPORTED' } : badParams(at, 'must have data');
  if (others.length > 0) return badParams(at, 'must have one content only');
  if (!isAbsent(mediaType) && mediaType !== '') {
    if (typeof mediaType !== 'string') return badParams(`${at}.mediaType`, 'must be a text');
    if (!isJsonType(mediaType)) return { reason: 'CONTENT_TYPE_NOT_SUPPORTED' };
  }
  if (!isObject(data)) return badParams(`${at}.data`, 'must be an object with the members resource and input');
  const misplaced = [PAYMENT_MEMBER, AUTHORIZATION_MEMBER].find((name) => name in data);
  if (misplaced !== undefined) return badParams(`${at}.data.${misplaced}`, 'belongs into data.input');
  const { resource, input = {}, ...beside } = data;
  if (typeof resource !== 'string' || resource === '')
    return badParams(`${at}.data.resource`, 'must be the id of a resource: a skill of the agent card');
  if (!isObject(input)) return badParams(`${at}.data.input`, 'must be an object');
  if (data['input'] === undefined && Object.keys(beside).length > 0)
    return badParams(`${at}.data.input`, 'must hold the input of the resource, which stands beside it here');
  return { resourceId: resource, input };
}

function inputOf(part: Json | undefined): JsonObject | undefined {
  const data = isObject(part) ? part['data'] : undefined;
  const input = isObject(data) ? data['input'] : undefined;
  return isObject(input) ? input : undefined;
}

/** In ProtoJSON null is the same as an absent member. */
function isAbsent(member: Json | undefined): boolean {
  return member === undefined || member === null;
}

/** Whether an id is there: a proto3 client sends an empty text for an absent one. */
function isNamed(id: Json | undefined): boolean {
  return !isAbsent(id) && id !== '';
}

function unsupported(message: string): Refusal {
  return { reason: 'UNSUPPORTED_OPERATION', message };
}

function unread(refusal: Refusal): Unread {
  return { kind: 'refused', refusal };
}
