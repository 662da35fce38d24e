/**
 * Makes calls from events: one for each call id, which is the gateway's own. Several callers may
 * choose the same request id.
 *
 * @typedef {import('../../events/event.ts').CommerceEvent} CommerceEvent
 * @typedef {'requested' | 'asked' | 'refused' | 'away' | 'paid' | 'answered' | 'delivered'
 *   | 'failed' | 'lost'} Outcome
 *
 * @typedef {object} Call
 * @property {string} key The call id.
 * @property {string} requestId
 * @property {string} resourceId
 * @property {string} channel
 * @property {Outcome} outcome
 * @property {string | undefined} reason Error code or refusal, of the last event that has one.
 * @property {string | undefined} transaction
 * @property {number | undefined} durationMs
 * @property {string} at Of the request, ISO 8601.
 * @property {readonly CommerceEvent[]} events Oldest first.
 */

/** Most events that are kept; the oldest are dropped. */
export const MAX_EVENTS = 5_000;

/**
 * @typedef {'good' | 'quiet' | 'warn' | 'bad'} Tone
 * @type {Readonly<Record<Outcome, { readonly label: string, readonly tone: Tone }>>}
 */
export const OUTCOMES = {
  delivered: { label: 'Delivered', tone: 'good' },
  lost: { label: 'Paid, not delivered', tone: 'bad' },
  failed: { label: 'Failed', tone: 'bad' },
  away: { label: 'Backend away', tone: 'bad' },
  refused: { label: 'Refused', tone: 'warn' },
  asked: { label: 'Payment asked', tone: 'quiet' },
  paid: { label: 'Paid', tone: 'quiet' },
  answered: { label: 'Answered', tone: 'quiet' },
  requested: { label: 'Requested', tone: 'quiet' },
};

/** @type {Readonly<Record<string, Outcome>>} */
const OUTCOME_OF = {
  'resource.requested': 'requested',
  'payment.required': 'asked',
  'payment.rejected': 'refused',
  'authorization.rejected': 'refused',
  'payment.settled': 'paid',
  'backend.called': 'answered',
  'backend.failed': 'failed',
  'resource.delivered': 'delivered',
};

/** Error codes that the buyer did not cause. */
const OF_THE_GATEWAY = /^(GATEWAY_BUSY|INTERNAL_ERROR|STORAGE_ERROR|[A-Z]+_PROVIDER_UNAVAILABLE)$/;

/** @type {Readonly<Record<string, string>>} */
const REASONS = { INPUT_INVALID: 'input', PAYMENT_REPLAYED: 'replayed', AUTHORIZATION_REPLAYED: 'replayed' };

/** Outcomes without a delivery: after a settlement the buyer is owed the answer. */
const SHORT_OF_DELIVERY = /** @type {ReadonlySet<Outcome>} */ (new Set(['failed', 'answered']));

export function createCalls() {
  /** @type {Map<string, CommerceEvent>} */
  const events = new Map();
  /** @type {Map<string, Call>} */
  let calls = new Map();
  return {
    /** @param {string} id */
    knows: (id) => events.has(id),
    /**
     * Returns whether any of them was new.
     *
     * @param {readonly CommerceEvent[]} more
     */
    add(more) {
      const fresh = more.filter(({ id }) => !events.has(id));
      if (fresh.length === 0) return false;
      for (const event of fresh) events.set(event.id, event);
      const kept = [...events.values()].sort(byPosition).slice(-MAX_EVENTS);
      events.clear();
      for (const event of kept) events.set(event.id, event);
      calls = grouped(kept, calls);
      return true;
    },
    /** Newest first; a call that has not changed is the same object as before. */
    list: () => [...calls.values()],
    /** @param {string} key */
    get: (key) => calls.get(key),
  };
}

/**
 * @param {readonly CommerceEvent[]} events Oldest first.
 * @param {ReadonlyMap<string, Call>} before
 */
function grouped(events, before) {
  /** @type {Map<string, CommerceEvent[]>} */
  const groups = new Map();
  for (const event of events) {
    const group = groups.get(event.callId) ?? [];
    group.push(event);
    groups.set(event.callId, group);
  }
  /** @type {Map<string, Call>} */
  const calls = new Map();
  for (const [key, group] of [...groups].reverse()) {
    const earlier = before.get(key);
    const unchanged = earlier?.events.length === group.length && earlier.events[0]?.id === group[0]?.id;
    calls.set(key, unchanged ? earlier : callOf(key, group));
  }
  return calls;
}

/**
 * @param {string} key
 * @param {readonly CommerceEvent[]} events
 * @returns {Call}
 */
export function callOf(key, events) {
  const settled = events.findLast(({ type }) => type === 'payment.settled');
  const outcome = outcomeOf(events);
  const first = events[0];
  return {
    key,
    requestId: first?.requestId ?? '',
    resourceId: first?.resourceId ?? '',
    channel: events.find(({ adapter }) => adapter !== undefined)?.adapter ?? '',
    outcome: settled !== undefined && SHORT_OF_DELIVERY.has(outcome) ? 'lost' : outcome,
    reason: reasonOf(events),
    transaction: text(settled?.data?.['transaction']) ?? text(events.findLast(isRefusal)?.data?.['transactionHash']),
    durationMs: events.findLast(({ durationMs }) => typeof durationMs === 'number')?.durationMs,
    at: first?.at ?? '',
    events,
  };
}

/** @param {readonly CommerceEvent[]} events */
function outcomeOf(events) {
  const last = events.findLast(({ type }) => OUTCOME_OF[type] !== undefined);
  if (last?.type === 'resource.requested' && last.status === 'error') return endOf(last.data ?? {});
  // A refused proof is answered with the terms again: the outcome is the refusal.
  if (last?.type === 'payment.required' && events.some(isRefusal)) return 'refused';
  if (last?.data?.['clientGone'] === true) return 'failed';
  return (last && OUTCOME_OF[last.type]) ?? 'requested';
}

/**
 * The outcome of a call that failed at its request.
 *
 * @param {Readonly<Record<string, unknown>>} data
 * @returns {Outcome}
 */
function endOf({ code, reason }) {
  if (reason === 'backend_unreachable') return 'away';
  return OF_THE_GATEWAY.test(String(code)) ? 'failed' : 'refused';
}

/** @param {CommerceEvent} event */
function isRefusal({ type }) {
  return type === 'payment.rejected' || type === 'authorization.rejected';
}

/** @param {readonly CommerceEvent[]} events */
function reasonOf(events) {
  const failure = events.findLast(
    ({ type, status }) => type === 'backend.failed' || type.endsWith('.rejected') || status === 'error',
  )?.data;
  const left = events.some(({ data }) => data?.['clientGone'] === true) ? 'CLIENT_GONE' : undefined;
  const code = text(failure?.['code']);
  return (code && (REASONS[code] ?? code)) ?? text(failure?.['reason']) ?? left;
}

/** @param {unknown} value */
function text(value) {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Whether a call has the outcome, and each word of `words` in one of its texts.
 *
 * @param {Call} call
 * @param {{ readonly words: string, readonly outcome: string }} filter
 */
export function matches(call, { words, outcome }) {
  if (outcome !== '' && call.outcome !== outcome) return false;
  const { key, requestId, resourceId, channel, reason = '', transaction = '' } = call;
  const texts = [key, requestId, resourceId, channel, reason, transaction, OUTCOMES[call.outcome].label];
  const searched = texts.join('\n').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searched.includes(word));
}

/**
 * Positions of the feed, `evt_<ms>-<seq>`, oldest first.
 *
 * @param {CommerceEvent} one
 * @param {CommerceEvent} other
 */
function byPosition(one, other) {
  const [ms = 0, sequence = 0] = position(one.id);
  const [otherMs = 0, otherSequence = 0] = position(other.id);
  return ms - otherMs || sequence - otherSequence;
}

/** @param {string} id */
function position(id) {
  return id.slice('evt_'.length).split('-').map(Number);
}
