/**
 * Shows the calls as a table with a filter and a pause, and one of them in a dialog.
 *
 * @typedef {import('./calls.js').Call} Call
 * @typedef {import('./calls.js').CommerceEvent} CommerceEvent
 */

import { matches, OUTCOMES } from './calls.js';
import { byId, byTable, cell, element, rows, say, time } from './dom.js';
import { clock, duration } from './format.js';

/** Most rows that are shown; a filter finds the others. */
export const MAX_ROWS = 200;

/**
 * Shows the calls that match the filter, newest first. While paused the list does not change.
 *
 * @param {(key: string) => void} open Shows one of them.
 */
export function callsView(open) {
  const body = byId('calls', HTMLTableSectionElement);
  const note = byId('calls-note', HTMLParagraphElement);
  const empty = byId('calls-empty', HTMLParagraphElement);
  const words = byId('words', HTMLInputElement);
  const outcome = byId('outcome', HTMLSelectElement);
  const pause = byId('pause', HTMLButtonElement);
  for (const [value, { label }] of Object.entries(OUTCOMES)) outcome.append(element('option', { value }, label));
  /** @type {Set<string> | undefined} */
  let seen;
  const show = rows(body, {
    fresh: ({ key }) => seen !== undefined && !seen.has(key),
    key: ({ key }) => key,
    version: (call) => call,
    cells: (call) => cells(call, open),
  });
  moveByArrows(body);

  /** @type {readonly Call[]} */
  let newest = [];
  /** @type {readonly Call[] | undefined} */
  let held;

  const render = () => {
    const calls = held ?? newest;
    pause.setAttribute('aria-pressed', String(held !== undefined));
    say(pause, held === undefined ? 'Pause' : 'Resume');
    const filter = { words: words.value.trim(), outcome: outcome.value };
    const found = calls.filter((call) => matches(call, filter));
    const shown = found.slice(0, MAX_ROWS);
    show(shown);
    oneTabStop(body);
    byTable(body).hidden = shown.length === 0;
    const waiting = held === undefined ? 0 : newest.filter((call) => !calls.includes(call)).length;
    const filtered = found.length < calls.length ? ` of ${calls.length}` : '';
    const bounded = shown.length < found.length ? `newest ${shown.length} of ` : '';
    const news = held === undefined ? '' : `, paused, ${waiting} new or changed`;
    say(note, calls.length === 0 ? '' : `${bounded}${found.length}${filtered}${news}`);
    say(empty, emptiness(calls.length, shown.length));
  };

  words.addEventListener('input', render);
  outcome.addEventListener('change', render);
  pause.addEventListener('click', () => {
    held = held === undefined ? newest : undefined;
    render();
  });
  /** @param {import('./session.js').Session} session */
  return ({ calls }) => {
    newest = calls.list();
    if (newest.length === 0) held = undefined;
    render();
    // A row is new if its call came in after the first look, not if a filter shows it again.
    seen = newest.length === 0 ? undefined : new Set(newest.map(({ key }) => key));
  };
}

/**
 * @param {number} calls
 * @param {number} shown
 */
function emptiness(calls, shown) {
  if (shown > 0) return '';
  return calls === 0
    ? 'No calls yet. Agents find what is sold at GET /api/resources; what they call appears here within seconds.'
    : 'No call matches this filter.';
}

/**
 * @param {Call} call
 * @param {(key: string) => void} open
 */
function cells(call, open) {
  const { key, requestId, resourceId, channel, outcome, reason, durationMs, at } = call;
  const { label, tone } = OUTCOMES[outcome];
  const when = Date.parse(at);
  const button = element(
    'button',
    { type: 'button', class: 'id', 'data-act': 'open', 'aria-haspopup': 'dialog', tabindex: '-1' },
    resourceId,
  );
  button.addEventListener('click', () => open(key));
  const why = reason === undefined ? '' : element('span', { class: 'more' }, reason);
  return [
    cell('Time', 'when', time(when, clock(when, Date.now()))),
    cell('Resource', 'main', button),
    cell('Outcome', 'state', element('span', { class: 'badge', 'data-tone': tone }, label), why),
    cell('Via', 'via', channel),
    cell('Took', 'number took', durationMs === undefined ? '–' : duration(durationMs)),
    cell('Request', 'code request', element('span', { title: requestId }, requestId)),
  ];
}

/** @param {HTMLElement} body */
function buttons(body) {
  return [...body.querySelectorAll('button')];
}

/**
 * All rows are one stop of the tab key; the arrow keys move from row to row.
 *
 * @param {HTMLElement} body
 */
function oneTabStop(body) {
  const all = buttons(body);
  const chosen = all.find((button) => button === document.activeElement) ?? all[0];
  for (const button of all) button.tabIndex = button === chosen ? 0 : -1;
}

/** @param {HTMLElement} body */
function moveByArrows(body) {
  body.addEventListener('keydown', (event) => {
    /** @type {readonly (Element | null)[]} */
    const all = buttons(body);
    const here = all.indexOf(document.activeElement);
    const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || there === undefined) return;
    event.preventDefault();
    const next = all[Math.min(Math.max(there, 0), all.length - 1)];
    if (next instanceof HTMLElement) next.focus();
    oneTabStop(body);
  });
}

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
    /** Closes the dialog, and forgets its call. */
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
