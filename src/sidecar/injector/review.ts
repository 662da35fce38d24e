/** Decides an admission review: whether a pod gets the gateway, passes as it is, or is refused. */

import type { Injection } from '../injection/inject-pod.ts';
import { OPT_IN_LABEL } from '../injection/names.ts';
import type { Pod } from '../injection/pod.ts';
import type { AdmissionRequest } from './admission-request.ts';

/** Of the cluster itself: never mutated, even when the selector of the webhook was changed. */
const CLUSTER_NAMESPACES: ReadonlySet<string> = new Set(['kube-system', 'kube-node-lease', 'kube-public']);
/** What the label of a pod that asks for the gateway says. */
const OPTED_IN = 'enabled';

/** Bounds of the API server: it cuts what is longer, characters. */
const MAX_WARNING = 256;
const MAX_WARNINGS = 4_096;
/** Room for the warning that says how many are left out, characters. */
const LEFT_OUT_ROOM = 48;

/**
 * What became of a review. `unchanged`: the pod has the gateway as it should be. `passed`: it is
 * none of the injector's business. `failed`: a bug.
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
  /** What was thrown where the result is `failed`. */
  readonly fault?: unknown;
}

interface ReviewParts {
  readonly inject: (pod: Pod) => Injection;
  /** Of the injector itself. */
  readonly namespace: string;
}

/**
 * Reviews one request. Nothing but the answer comes of it, so a dry run is answered in the same
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

/** The selectors of the webhook say the same; they can be changed by mistake. */
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
