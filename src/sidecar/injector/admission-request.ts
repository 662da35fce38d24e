/** Reads an AdmissionReview v1 from the bytes of a request into the parts that a review needs. */

import { MAX_JSON_DEPTH } from '../../json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import type { Pod } from '../injection/pod.ts';

const VERSION = 'admission.k8s.io/v1';
/** Longest name of a review that is echoed, characters; API servers send 36. */
const MAX_UID = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** What the API server asks. */
export interface AdmissionRequest {
  /** Echoed in the answer. */
  readonly uid: string;
  readonly namespace: string;
  /** For the log: empty when the server has still to make it from `generateName`. */
  readonly name: string;
  readonly dryRun: boolean;
  /** The pod that is to be created; undefined: the request is about something else. */
  readonly pod: Pod | undefined;
}

/** The request is no review that can be answered; the message says why and quotes nothing. */
export class MalformedReview extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MalformedReview';
  }
}

/**
 * Reads a review. Not the strict parser of calls: a pod may hold more members than a call, numbers
 * beyond a double (`tolerationSeconds`), and has been parsed once by the API server already.
 * @throws MalformedReview
 */
export function readAdmissionRequest(bytes: Uint8Array): AdmissionRequest {
  const review = parsed(bytes);
  if (!isObject(review)) throw new MalformedReview('The body must be one JSON object, an AdmissionReview.');
  if (review['kind'] !== 'AdmissionReview' || review['apiVersion'] !== VERSION)
    throw new MalformedReview(`The body must be of kind AdmissionReview and apiVersion ${VERSION}.`);
  const request = review['request'];
  if (!isObject(request)) throw new MalformedReview('request is missing: this is no question of an API server.');
  const { uid, operation, namespace, name, dryRun } = request;
  if (typeof uid !== 'string' || uid === '' || uid.length > MAX_UID)
    throw new MalformedReview(`request.uid must be a string of 1 to ${MAX_UID} characters.`);
  if (typeof operation !== 'string') throw new MalformedReview('request.operation must be a string such as CREATE.');
  const isCreation = operation === 'CREATE' && isAboutPods(request);
  return {
    uid,
    namespace: textOr(namespace, 'request.namespace'),
    name: textOr(name, 'request.name'),
    dryRun: dryRun === true,
    pod: isCreation ? podIn(request['object']) : undefined,
  };
}

function parsed(bytes: Uint8Array): Json {
  if (isDeep(bytes)) throw new MalformedReview(`The body is nested deeper than ${MAX_JSON_DEPTH} levels; no pod is.`);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Json;
  } catch {
    throw new MalformedReview('The body is not well-formed JSON in UTF-8.');
  }
}

/** Whether brackets outside strings are nested too deep for functions that call themselves. */
function isDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
  }
  return false;
}

/** Pods themselves: not a subresource of theirs, such as a binding. */
function isAboutPods({ resource, kind, subResource }: JsonObject): boolean {
  const isPods = isObject(resource) && resource['resource'] === 'pods' && isCore(resource);
  const isPod = isObject(kind) && kind['kind'] === 'Pod' && isCore(kind);
  return isPods && isPod && (subResource === undefined || subResource === '');
}

function isCore({ group = '', version }: JsonObject): boolean {
  return group === '' && version === 'v1';
}

function podIn(object: Json | undefined): Pod {
  if (!isObject(object)) throw new MalformedReview('request.object must be the pod that is created.');
  const { metadata = {}, spec } = object;
  if (!isObject(metadata)) throw new MalformedReview('request.object.metadata must be an object.');
  if (!isObject(spec)) throw new MalformedReview('request.object.spec must be an object.');
  const { containers } = spec;
  const isList = Array.isArray(containers) && containers.length > 0;
  if (!isList || !containers.every((one) => isObject(one) && typeof one['name'] === 'string'))
    throw new MalformedReview('request.object.spec.containers must be a list of containers with names.');
  return object as unknown as Pod;
}

function textOr(value: Json | undefined, path: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new MalformedReview(`${path} must be a string.`);
  return value;
}
