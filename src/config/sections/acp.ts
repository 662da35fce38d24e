/** `protocols.acp` (acp 13.7): the checkout adapter, its clients, backend and idempotency. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { OPERATION_RULES, OPERATIONS, type Operation, SESSION_PLACE } from '../../checkouts/operations.ts';
import type { AcpBackend, AcpClient, AcpConfig, IdempotencySettings } from '../../checkouts/settings.ts';
import type { SealingKey } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { readTemplate } from '../../resources/url-template.ts';
import type { ConfigDocument } from '../document/document.ts';
import { type BackendBase, backendBase, lowerHeaders } from './backend.ts';
import { SecretUses, STRONG_TOKEN_LENGTH } from './keys.ts';
import { checkoutRing } from './storage.ts';

type AcpDocument = ConfigDocument['protocols']['acp'];
type HeaderMap = BackendBase['headers'];

const IDEMPOTENCY = schema.properties.protocols.properties.acp.properties.idempotency.properties;
const AT = 'protocols.acp';
const AUTH_AT = 'protocols.acp.auth';
const BACKEND_AT = 'protocols.acp.backend';
const IDEMPOTENCY_AT = 'protocols.acp.idempotency';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The caller's id where there is one token and no list (acp 8). */
export const ONLY_CLIENT = 'default';

/** Headers that a checkout call sets itself, besides those of every backend call (acp 13.3). */
const OWN_HEADERS: readonly string[] = ['accept', 'api-version', 'request-id', 'signature', 'timestamp', 'x-attempt'];

/** Other sections that the checkout adapter is derived from. */
export interface AcpSurroundings {
  /** Undefined when that section was refused. */
  readonly backend: BackendBase | undefined;
  /** Whether only this machine can reach the gateway: then a short token only causes a warning. */
  readonly trial: boolean;
  /** The keys of the storage; empty where there are none. */
  readonly sealing: readonly SealingKey[];
}

/** Disabled, nothing is required; enabled, everything that is missing is named at once. */
export function deriveAcp(
  document: ConfigDocument,
  { backend, trial, sealing }: AcpSurroundings,
  problems: ProblemList,
): AcpConfig | undefined {
  if (!problems.readable(AT) || !problems.sound(`${AT}.enabled`)) return undefined;
  const { acp } = document.protocols;
  const { mountPath, discovery, acceptLineItemQuantity, strictSemantics, authenticationErrors } = acp;
  if (!acp.enabled) return { enabled: false, mountPath };
  const uses = new SecretUses(problems);
  noteOperatorTokens(document, uses, problems);
  const clients = acpClients(acp.auth, trial, uses, problems);
  const idempotency = acpIdempotency(acp, sealing, uses, problems);
  const merchant = backend && acpBackend(acp.backend, backend, problems);
  if (idempotency === undefined || merchant === undefined) return undefined;
  return {
    enabled: true,
    mountPath,
    clients,
    backend: merchant,
    idempotency,
    maxInFlight: acp.limits.maxInFlight,
    ...{ discovery, acceptLineItemQuantity, strictSemantics, authenticationErrors },
  };
}

/** Notes the operator tokens, because no client may have one. */
function noteOperatorTokens({ server }: ConfigDocument, uses: SecretUses, problems: ProblemList): void {
  if (!problems.sound('server.adminToken', 'server.adminTokenNext')) return;
  const { adminToken = '', adminTokenNext = '' } = server;
  if (adminToken !== '') uses.note('server.adminToken', adminToken);
  // `ROTATION_WARNINGS` has a warning of the same token twice.
  if (adminTokenNext !== '' && adminTokenNext !== adminToken) uses.note('server.adminTokenNext', adminTokenNext);
}

/**
 * `auth`: who may call. Each token belongs to one caller, or a claim could belong to two. `trial`:
 * short tokens are accepted.
 */
function acpClients(
  auth: AcpDocument['auth'],
  trial: boolean,
  uses: SecretUses,
  problems: ProblemList,
): readonly AcpClient[] {
  if (!problems.readable(AUTH_AT) || !problems.readable(`${AUTH_AT}.clients`)) return [];
  const { token = '', clients } = auth;
  if (token !== '' && clients !== undefined)
    problems.add(AUTH_AT, 'must have exactly one of token and clients; ACP_TOKEN in the environment sets token');
  if (token === '' && clients === undefined)
    problems.add(AUTH_AT, `is missing: { token: "\${ACP_TOKEN}" }, or clients: a list of { id, tokens }`);
  if (clients === undefined) {
    if (token !== '' && problems.sound(`${AUTH_AT}.token`))
      checkToken(`${AUTH_AT}.token`, token, trial, uses, problems);
    return [{ id: ONLY_CLIENT, tokens: [token] }];
  }
  const ids = new Set<string>();
  return clients.flatMap((client, index) => {
    const at = memberPath(`${AUTH_AT}.clients`, index);
    if (!problems.sound(at)) return [];
    const { id, tokens } = client;
    if (ids.has(id)) problems.add(`${at}.id`, 'is there already; one client is one entry');
    ids.add(id);
    // The next token may be empty between two rotations.
    const given = tokens.filter((one) => one !== '');
    if (given.length === 0) problems.add(`${at}.tokens`, 'must have a token that is not empty');
    for (const [place, one] of tokens.entries())
      if (one !== '') checkToken(memberPath(`${at}.tokens`, place), one, trial, uses, problems);
    return [{ id, tokens: given }];
  });
}

function checkToken(path: string, token: string, trial: boolean, uses: SecretUses, problems: ProblemList): void {
  if (!trial && token.length < STRONG_TOKEN_LENGTH)
    problems.add(
      path,
      `must have at least ${STRONG_TOKEN_LENGTH} characters; make it with: openssl rand -hex 32. Only a gateway on this machine ` +
        'alone may have a shorter one: publicBaseUrl on loopback, storage.sqlite, and no public network',
    );
  uses.note(path, token);
}

type Operations = AcpBackend['operations'];

/** `backend`: defaults to that of the resources. `checkForms` has checked `baseUrl`. */
function acpBackend(
  document: AcpDocument['backend'],
  backend: BackendBase,
  problems: ProblemList,
): AcpBackend | undefined {
  if (!problems.readable(BACKEND_AT)) return undefined;
  const { baseUrl, headers, operations, scopesByClient } = document;
  const taken = problems.sound(`${BACKEND_AT}.headers`) ? headersOf(headers, backend, problems) : undefined;
  if (taken === undefined || !problems.sound(`${BACKEND_AT}.baseUrl`, `${BACKEND_AT}.operations`)) return undefined;
  const { origin, pathPrefix } = baseUrl === undefined ? backend : backendBase(baseUrl);
  const operation = (id: Operation) => {
    const { path = OPERATION_RULES[id].path, timeoutMs = OPERATION_RULES[id].timeoutMs } = operations[id] ?? {};
    const fault = pathFault(id, path);
    if (fault !== undefined) problems.add(`${BACKEND_AT}.operations.${id}.path`, fault);
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
  return { origin, headers: taken, operations: derived, scopesByClient };
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

/** Refuses one method and path for two operations: a cancel could complete the session. */
function checkDifferent(operations: Operations, problems: ProblemList): void {
  const seen = new Map<string, Operation>();
  for (const id of OPERATIONS) {
    const call = `${OPERATION_RULES[id].method} ${operations[id].path}`;
    const other = seen.get(call);
    if (other !== undefined)
      problems.add(
        `${BACKEND_AT}.operations.${id}.path`,
        `must differ from that of ${other}: the merchant could not tell them apart`,
      );
    else seen.set(call, id);
  }
}

function headersOf(own: HeaderMap | undefined, backend: BackendBase, problems: ProblemList): HeaderMap {
  const headers = own === undefined ? backend.headers : lowerHeaders(own, `${BACKEND_AT}.headers`, problems);
  const taken = OWN_HEADERS.filter((name) => Object.hasOwn(headers, name)).join(', ');
  if (taken === '') return headers;
  const message =
    own === undefined
      ? `is missing: backend.headers has ${taken}, which a checkout call sets itself; list the headers for it here`
      : `must not have ${taken}: a checkout call sets that itself`;
  problems.add(`${BACKEND_AT}.headers`, message);
  return headers;
}

/**
 * `idempotency`: undefined when the secret or the keys are missing; the problems explain how to
 * make them. `sealing`: the keys of the storage.
 */
function acpIdempotency(
  { idempotency: document, sessionDays }: AcpDocument,
  sealing: readonly SealingKey[],
  uses: SecretUses,
  problems: ProblemList,
): IdempotencySettings | undefined {
  if (!problems.readable(IDEMPOTENCY_AT)) return undefined;
  const { secret, retentionHours, merchant, sessionLock } = document;
  if (secret === undefined) problems.add(`${IDEMPOTENCY_AT}.secret`, `is missing: ${IDEMPOTENCY.secret.description}`);
  else if (problems.sound(`${IDEMPOTENCY_AT}.secret`)) uses.note(`${IDEMPOTENCY_AT}.secret`, secret);
  const ring = checkoutRing(sealing, uses, problems);
  if (secret === undefined || ring === undefined || !problems.sound(IDEMPOTENCY_AT)) return undefined;
  return {
    retentionMs: retentionHours * HOUR_MS,
    sessionKeepMs: sessionDays * DAY_MS,
    secret: Buffer.from(secret),
    keys: ring,
    merchant,
    sessionLock,
  };
}
