import { OPERATION_RULES, OPERATIONS, type Operation, SESSION_PLACE } from '../../checkouts/operations.ts';
import type { AcpBackend } from '../../checkouts/settings.ts';
import type { ProblemList } from '../../problems/problem.ts';
import { readTemplate } from '../../resources/url-template.ts';
import type { AcpDocument } from '../document/acp-document.ts';
import type { HeaderMap } from '../document/document.ts';
import { type BackendBase, backendBase, lowerHeaders } from './backend.ts';

const AT = 'protocols.acp.backend';
/** Headers that a checkout call sets itself, besides those that no backend may be given (acp 13.3). */
const OWN_HEADERS: readonly string[] = ['accept', 'api-version', 'request-id', 'signature', 'timestamp', 'x-attempt'];

type Operations = AcpBackend['operations'];

/** `backend`: what is not said is that of the shop's own backend. `baseUrl` has passed the rules of `fields.ts`. */
export function acpBackend(
  document: AcpDocument['backend'] = {},
  shop: BackendBase,
  problems: ProblemList,
): AcpBackend {
  const { baseUrl, headers, operations = {} } = document;
  const { origin, pathPrefix } = baseUrl === undefined ? shop : backendBase(baseUrl);
  const operation = (id: Operation) => {
    const { path = OPERATION_RULES[id].path, timeoutMs = OPERATION_RULES[id].timeoutMs } = operations[id] ?? {};
    const fault = pathFault(id, path);
    if (fault !== undefined) problems.add(`${AT}.operations.${id}.path`, fault);
    return { path: pathPrefix + path, timeoutMs };
  };
  const derived: Operations = {
    createCheckoutSession: operation('createCheckoutSession'),
    updateCheckoutSession: operation('updateCheckoutSession'),
    getCheckoutSession: operation('getCheckoutSession'),
    completeCheckoutSession: operation('completeCheckoutSession'),
    cancelCheckoutSession: operation('cancelCheckoutSession'),
  };
  checkDifferent(derived, problems);
  const { scopesByClient = false } = document;
  return { origin, headers: headersOf(headers, shop, problems), operations: derived, scopesByClient };
}

function pathFault(id: Operation, path: string): string | undefined {
  const reading = readTemplate(path);
  if (!reading.ok) return reading.message;
  const places = reading.template.parameters.map((name) => `{${name}}`);
  const wanted = OPERATION_RULES[id].path.includes(SESSION_PLACE);
  const sound = wanted ? places.join() === SESSION_PLACE : places.length === 0;
  if (sound) return undefined;
  return wanted
    ? `must have ${SESSION_PLACE} once, and no other {…}: there the session's id goes`
    : 'must have no {…}: there is no session yet';
}

/** An operation that reaches another one's handler would complete what was to be canceled. */
function checkDifferent(operations: Operations, problems: ProblemList): void {
  const seen = new Map<string, Operation>();
  for (const id of OPERATIONS) {
    const call = `${OPERATION_RULES[id].method} ${operations[id].path}`;
    const other = seen.get(call);
    if (other !== undefined)
      problems.add(
        `${AT}.operations.${id}.path`,
        `must differ from that of ${other}: the merchant could not tell them apart`,
      );
    else seen.set(call, id);
  }
}

function headersOf(own: HeaderMap | undefined, shop: BackendBase, problems: ProblemList): HeaderMap {
  const headers = own === undefined ? shop.headers : lowerHeaders(own, `${AT}.headers`, problems);
  const taken = OWN_HEADERS.filter((name) => Object.hasOwn(headers, name)).join(', ');
  if (taken === '') return headers;
  const message =
    own === undefined
      ? `is missing: backend.headers has ${taken}, which a checkout call says itself; list the headers for it here`
      : `must not have ${taken}: a checkout call says that itself`;
  problems.add(`${AT}.headers`, message);
  return headers;
}
