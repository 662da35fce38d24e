/**
 * The gateway's routes, as the page calls them.
 *
 * @typedef {import('../../events/event.ts').CommerceEvent} CommerceEvent
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {import('../../telemetry/health/monitor.ts').Readiness} Readiness
 * @typedef {Readonly<Record<string, string>>} Query
 * @typedef {'token' | 'guesses' | 'missing' | 'busy' | 'store' | 'away' | 'strange'} RefusalKind
 */

/**
 * @template {{ readonly id: string }} T
 * @typedef {{ readonly items: readonly T[], readonly next?: string | undefined }} Page
 */

/** Longest wait for an answer, milliseconds. */
const ANSWER_TIMEOUT_MS = 10_000;
/** The routes that need the token. */
const OPERATOR_ROUTES = new Set(['api/events', 'api/receipts']);
/** The shape of a token (specification 5): other characters are not allowed in a header. */
export const TOKEN = /^[!-~]{1,512}$/;

/** The reason why there is no answer to show. */
export class Refusal extends Error {
  /**
   * @param {RefusalKind} kind
   * @param {number} [retryAfterS] Seconds, when the gateway named them.
   * @param {number} [status]
   */
  constructor(kind, retryAfterS, status) {
    super(WORDS[kind](status, retryAfterS));
    this.kind = kind;
    /** Whether waiting does not help: another token is needed, or another gateway. */
    this.final = kind === 'token' || kind === 'guesses' || kind === 'missing';
    this.retryAfterS = retryAfterS;
  }
}

/** @type {Readonly<Record<RefusalKind, (status?: number, retryAfterS?: number) => string>>} */
const WORDS = {
  token: () => 'The gateway rejected this token.',
  guesses: (_status, retryAfterS) =>
    `Too many wrong tokens from here; wait ${retryAfterS === undefined ? 'a minute' : `${retryAfterS} s`}. The right one still works.`,
  missing: () => 'This gateway has no operator routes: no operator token is configured.',
  busy: (status) => (status === 429 ? 'The gateway limits requests from here.' : 'The gateway is busy or draining.'),
  store: () => 'The store is away: what is shown is what was read before.',
  away: () => 'The gateway does not answer.',
  strange: (status = 0) => `This page does not understand the gateway's answer (status ${status}).`,
};

/**
 * @param {string} token Only this closure holds it.
 * @param {{ readonly base: URL, readonly ask?: typeof fetch }} where `base`: the URL above `api/`.
 */
export function openGateway(token, { base, ask = fetch }) {
  /**
   * @param {string} path
   * @param {Query} [query]
   * @param {readonly number[]} [good] Statuses whose body is the answer.
   * @returns {Promise<any>}
   */
  const get = async (path, query = {}, good = [200]) => {
    const url = new URL(path, base);
    url.search = new URLSearchParams(query).toString();
    const operator = OPERATOR_ROUTES.has(path);
    const response = await ask(url, {
      headers: operator ? { authorization: `Bearer ${token}` } : {},
      cache: operator ? 'no-store' : 'no-cache',
      credentials: 'omit',
      mode: 'same-origin',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    }).catch(() => {
      throw new Refusal('away');
    });
    const body = await response.json().catch(() => undefined);
    if (!good.includes(response.status) || !isObject(body)) throw refusal(response, body, operator);
    return body;
  };
  return {
    /**
     * @param {Query} query
     * @returns {Promise<Page<CommerceEvent>>}
     */
    async events(query) {
      const { events, nextCursor } = await get('api/events', query);
      return { items: listed(events), next: nextCursor };
    },
    /**
     * @param {Query} query
     * @returns {Promise<Page<Receipt>>}
     */
    async receipts(query) {
      const { receipts, nextCursor } = await get('api/receipts', query);
      return { items: listed(receipts), next: nextCursor };
    },
    /** @returns {Promise<Readiness>} */
    async readiness() {
      const body = await get('ready', {}, [200, 503]);
      // A proxy may answer 503 by itself.
      if (!isObject(body.store)) throw new Refusal('away');
      return body;
    },
    /**
     * Names of the resources by id.
     *
     * @returns {Promise<ReadonlyMap<string, string>>}
     */
    async names() {
      const { resources } = await get('api/resources');
      return new Map(listed(resources).map((/** @type {{ id: string, name: string }} */ { id, name }) => [id, name]));
    },
    /** @returns {Promise<{ readonly name: string, readonly version: string }>} */
    async merchant() {
      const { merchant, gateway } = await get('.well-known/agent-commerce');
      return { name: String(merchant?.name ?? ''), version: String(gateway?.implementationVersion ?? '') };
    },
  };
}

/**
 * @param {Response} response
 * @param {unknown} body
 * @param {boolean} operator Whether the route needs the token.
 */
function refusal({ status, headers }, body, operator) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const retryAfterS = Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
  if (status === 401) return new Refusal('token');
  if (status === 404) return new Refusal('missing');
  // On these routes the gateway limits wrong tokens only; any other 429 is of a proxy.
  if (status === 429 && operator && hasCode(body, 'RATE_LIMITED')) return new Refusal('guesses', retryAfterS);
  if (status === 429) return new Refusal('busy', retryAfterS, status);
  if (status === 503) return new Refusal(hasCode(body, 'STORAGE_ERROR') ? 'store' : 'busy', retryAfterS, status);
  return new Refusal('strange', retryAfterS, status);
}

/**
 * @param {unknown} body
 * @param {string} code
 */
function hasCode(body, code) {
  return isObject(body) && body['code'] === code;
}

/**
 * @param {unknown} value
 * @returns {any[]}
 */
function listed(value) {
  if (!Array.isArray(value)) throw new Refusal('strange', undefined, 200);
  return value;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null;
}
