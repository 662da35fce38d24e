/** Decides an admission review: whether a pod gets the gateway, passes as it is, or is refused. */

import { isObject, type Json, type JsonObject, MAX_JSON_DEPTH } from '../../json/json.ts';
import type { Injection } from '../injection/inject-pod.ts';
import { OPT_IN_LABEL } from '../injection/names.ts';
import type { Pod } from '../injection/pod.ts';

/** The cluster's own namespaces: never mutated, even if the selector of the webhook was changed. */
const CLUSTER_NAMESPACES: ReadonlySet<string> = new Set(['kube-system', 'kube-node-lease', 'kube-public']);
/** The value of the label by which a pod asks for the gateway. */
const OPTED_IN = 'enabled';

/** Bounds of the API server, which cuts longer warnings, characters. */
const MAX_WARNING = 256;
const MAX_WARNINGS = 4_096;
/** Room for the warning that says how many are left out, characters. */
const LEFT_OUT_ROOM = 48;

/**
 * Results of a review. `unchanged`: the pod has the gateway as it should be. `passed`: the review
 * does not concern the injector. `failed`: a bug.
 */
export const REVIEW_RESULTS = ['injected', 'unchanged', 'passed', 'refused', 'failed'] as const;
type ReviewResult = (typeof REVIEW_RESULTS)[number];

/** The answer in the words of `admission.k8s.io/v1`. */
interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  /** With `patch` only: the API server refuses one without the other. */
  readonly patchType?: 'JSONPatch';
  /** Base64. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
  readonly status?: { readonly code: number; readonly reason: string; readonly message: string };
}

export interface Review {
  readonly result: ReviewResult;
  readonly response: AdmissionResponse;
  /** The thrown error where the result is `failed`. */
  readonly fault?: unknown;
}

interface ReviewParts {
  readonly inject: (pod: Pod) => Injection;
  /** The namespace of the injector itself. */
  readonly namespace: string;
}

/**
 * Reviews one request. A review has no effect but its answer, so a dry run is answered in the same
 * way.
 */
export function review(request: AdmissionRequest, { inject, namespace }: ReviewParts): Review {
  const { uid, pod } = request;
  if (pod === undefined || !isWanted(request, pod, namespace)) return allowed(uid, 'passed');
  let injection: Injection;
  try {
    injection = inject(pod);
  } catch (fault) {
    const message = 'the injector of the agent-commerce gateway failed; its log says why';
    return { ...denied(uid, 'failed', { code: 500, reason: 'InternalError', message }), fault };
  }
  if (injection.kind === 'refused')
    return denied(uid, 'refused', { code: 422, reason: 'Invalid', message: injection.message });
  const { patch, warnings } = injection;
  if (patch.length === 0) return allowed(uid, 'unchanged', { warnings: bounded(warnings) });
  const encoded = Buffer.from(JSON.stringify(patch)).toString('base64');
  return allowed(uid, 'injected', { patchType: 'JSONPatch', patch: encoded, warnings: bounded(warnings) });
}

/** Whether a pod asks for the gateway. The webhook's selectors say so too, unless misconfigured. */
function isWanted({ namespace }: AdmissionRequest, { metadata = {} }: Pod, own: string): boolean {
  if (CLUSTER_NAMESPACES.has(namespace) || namespace === own) return false;
  return metadata.labels?.[OPT_IN_LABEL] === OPTED_IN;
}

type Additions = Pick<AdmissionResponse, 'patchType' | 'patch' | 'warnings'>;

function allowed(uid: string, result: ReviewResult, { warnings = [], ...patch }: Additions = {}): Review {
  const told = warnings.length === 0 ? {} : { warnings };
  return { result, response: { uid, allowed: true, ...patch, ...told, auditAnnotations: { result } } };
}

function denied(uid: string, result: ReviewResult, status: NonNullable<AdmissionResponse['status']>): Review {
  return { result, response: { uid, allowed: false, status, auditAnnotations: { result } } };
}

/** Warnings as long as the API server shows them, and how many more there are. */
function bounded(warnings: readonly string[]): readonly string[] {
  const told: string[] = [];
  let left = MAX_WARNINGS - LEFT_OUT_ROOM;
  for (const warning of warnings.map(shortened)) {
    const length = [...warning].length;
    if (length > left) return [...told, `${warnings.length - told.length} more warnings are left out`];
    told.push(warning);
    left -= length;
  }
  return told;
}

/** One line: the header that carries a warning has no room for a second. */
function shortened(warning: string): string {
  const characters = [...warning.replace(/\p{Cc}+/gu, ' ')];
  return characters.length <= MAX_WARNING ? characters.join('') : `${characters.slice(0, MAX_WARNING - 1).join('')}…`;
}

const VERSION = 'admission.k8s.io/v1';
/** Longest name of a review that is echoed, characters; API servers send 36. */
const MAX_UID = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** The question of the API server. */
interface AdmissionRequest {
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
