/** Shows one call with its events in a dialog. */

import { OUTCOMES } from './calls.js';
import { byId, element, say } from './dom.js';
import { clock, duration } from './format.js';

/**
 * @typedef {import('./calls.js').Call} Call
 * @typedef {import('./calls.js').CommerceEvent} CommerceEvent
 */

/** The dialog follows its call as long as it is open. Escape closes it. */
export function detailsView() {
  const dialog = byId('details', HTMLDialogElement);
  const title = byId('details-title', HTMLHeadingElement);
  const facts = byId('details-facts', HTMLDListElement);
  const events = byId('details-events', HTMLOListElement);
  byId('details-close', HTMLButtonElement).addEventListener('click', () => dialog.close());
  /** @type {Call | undefined} */
  let shown;

  /** @param {Call} call */
  const render = (call) => {
    shown = call;
    say(title, call.resourceId);
    facts.replaceChildren(...factsOf(call).flatMap(([name, value]) => pair(name, value)));
    const began = Date.parse(call.events[0]?.at ?? '');
    events.replaceChildren(...call.events.map((event) => entry(event, Date.parse(event.at) - began)));
  };

  return {
    /** @param {Call | undefined} call */
    open(call) {
      if (call === undefined) return;
      render(call);
      dialog.showModal();
    },
    /** @param {import('./session.js').Session} session */
    render({ calls }) {
      const now = shown === undefined ? undefined : calls.get(shown.key);
      if (dialog.open && now !== undefined && now !== shown) render(now);
    },
    /** Closes it, and forgets what it showed. */
    clear() {
      shown = undefined;
      say(title, 'Call');
      for (const node of [facts, events]) node.replaceChildren();
      dialog.close();
    },
  };
}

/**
 * @param {Call} call
 * @returns {readonly (readonly [string, string])[]}
 */
function factsOf({ key, requestId, channel, outcome, reason, transaction, durationMs, at }) {
  return [
    ['Outcome', OUTCOMES[outcome].label],
    ['Reason', reason ?? ''],
    ['Transaction', transaction ?? ''],
    ['Request', requestId],
    ['Call', key === requestId ? '' : key],
    ['Via', channel],
    ['Requested', `${clock(Date.parse(at), Date.now())} (${at})`],
    ['Took', durationMs === undefined ? '' : duration(durationMs)],
  ];
}

/**
 * @param {string} name
 * @param {string} value
 */
function pair(name, value) {
  return value === '' ? [] : [element('dt', {}, name), element('dd', {}, value)];
}

/**
 * @param {CommerceEvent} event
 * @param {number} afterMs Since the first event.
 */
function entry({ type, data = {}, status }, afterMs) {
  const facts = Object.entries(data).map(
    ([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return element(
    'li',
    { 'data-tone': status === 'error' ? 'bad' : 'quiet' },
    element('span', { class: 'offset' }, `+${duration(Math.max(afterMs, 0))}`),
    element('span', { class: 'type' }, type),
    ...(facts.length === 0 ? [] : [element('span', { class: 'more' }, facts.join(' · '))]),
  );
}
