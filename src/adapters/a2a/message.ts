/** Reads `params` of SendMessage: a call of a resource. */

import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import type { CarriedMandate } from '../../mandates/ap2/envelope.ts';
import type { CarriedProof } from '../../payments/settlement/verifier.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/reserved-members.ts';
import { isJsonType } from '../../server/http/headers.ts';
import { memberMandate, memberProof, oneMandate, oneProof } from '../extract-credentials.ts';
import { badParams, type Refusal } from './refusal.ts';
import { PAYMENT_PAYLOAD } from './x402-extension.ts';

/** A message that calls a resource. */
export interface CallMessage {
  readonly kind: 'call';
  readonly resourceId: string;
  readonly input: JsonObject;
  readonly proof: CarriedProof;
  readonly mandate: CarriedMandate;
}

type CalledResource = Pick<CallMessage, 'resourceId' | 'input'>;

/** The credentials in the headers of the request; a message has further places for them. */
export interface CarriedInHeaders {
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
export function readSendMessage(params: Json | undefined, headers: CarriedInHeaders): CallMessage | Unread {
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

/** What breaks the rules of a Message in A2A itself. */
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
