/**
 * The page: asks for the token, watches the gateway with it, and forgets it.
 *
 * @typedef {import('../../telemetry/health/monitor.ts').ReadinessCheck} ReadinessCheck
 * @typedef {import('./session.js').Session} Session
 */

import { callsView, detailsView } from './calls-view.js';
import { historyView } from './chart-view.js';
import { byId, element, say } from './dom.js';
import { clock, counted, span } from './format.js';
import { openGateway, Refusal, TOKEN } from './gateway.js';
import { owed } from './receipts.js';
import { figuresView, owedView, refundView, revenueView } from './receipts-view.js';
import { createSession, createWatch } from './session.js';

/**
 * @typedef {{ readonly session: Session, readonly watch: ReturnType<typeof createWatch> }} Open
 */

const TITLE = 'Operator console';
/** Relative to the page: the console also works below a path of an ingress. */
const BASE = new URL('.', document.baseURI);

const signIn = byId('sign-in', HTMLDivElement);
const page = byId('console', HTMLDivElement);
const input = byId('token', HTMLInputElement);
const problem = byId('token-problem', HTMLParagraphElement);
const submit = byId('open', HTMLButtonElement);
const merchant = byId('merchant', HTMLHeadingElement);
const release = byId('release', HTMLParagraphElement);
const watching = byId('watching', HTMLParagraphElement);
const notice = byId('notice', HTMLDivElement);
const older = byId('older', HTMLButtonElement);

const details = detailsView();
const refund = refundView(announce);
const history = historyView(announce);
const views = [
  readinessView(),
  figuresView(),
  owedView((facts) => void refund.copy(facts)),
  callsView((key) => details.open(open?.session.calls.get(key))),
  revenueView(),
  details.render,
];

/** @type {Open | undefined} */
let open;
let owedBefore = 0;

/** @param {string} text */
function announce(text) {
  say(byId('announcements', HTMLParagraphElement), text);
}

/** @param {string} token */
function begin(token) {
  const session = createSession(openGateway(token, { base: BASE }));
  const watch = createWatch({
    look: session.look,
    onState: (state) => show({ session, watch }, state),
    visible: () => !document.hidden,
  });
  open = { session, watch };
  problem.textContent = '';
  submit.disabled = true;
  say(submit, 'Checking…');
  void watch.now();
}

/**
 * @param {Open} from
 * @param {import('./session.js').WatchState} state
 */
function show(from, state) {
  // A forgotten session may still get answers.
  if (open?.session !== from.session) return;
  if (state.kind === 'ended') {
    forget(state.refusal.message);
    return;
  }
  if (page.hidden) {
    if (state.kind === 'hidden') return;
    if (state.kind === 'retrying') {
      forget(state.refusal.message);
      return;
    }
    reveal();
    history.begin(from.session);
  }
  tellWatching(state);
  render(from.session);
}

function reveal() {
  signIn.hidden = true;
  page.hidden = false;
  input.value = '';
  byId('content', HTMLElement).focus();
  announce('Signed in');
}

/** @param {Session} session */
function render(session) {
  const { name, version } = session.facts.merchant;
  const debts = owed(session.undelivered.paid(), Date.now()).length;
  say(merchant, name || TITLE);
  say(release, name === '' ? '' : `${TITLE} · gateway ${version}`);
  document.title = `${debts === 0 ? '' : `(${debts}) `}${name === '' ? '' : `${name} · `}${TITLE}`;
  if (debts > owedBefore) announce(`${counted(debts, 'payment')} not delivered`);
  owedBefore = debts;
  for (const view of views) view(session);
}

/** @param {import('./session.js').WatchState} state */
function tellWatching(state) {
  const before = watching.dataset['state'];
  watching.dataset['state'] = state.kind;
  notice.hidden = state.kind !== 'retrying';
  if (state.kind === 'retrying') {
    const words = `${state.refusal.message} Next try in ${seconds(state.at - Date.now())}.`;
    say(byId('notice-text', HTMLParagraphElement), words);
    say(watching, 'Waiting');
    if (before !== state.kind) announce(state.refusal.message);
  } else if (state.kind === 'live') {
    say(watching, `Live · ${clock(state.at, state.at)}`);
    if (before === 'retrying') announce('The gateway answers again');
  } else say(watching, 'Paused while hidden');
}

/** @param {number} ms */
function seconds(ms) {
  return ms < 60_000 ? counted(Math.max(1, Math.round(ms / 1_000)), 'second') : span(ms);
}

/** Drops the token and everything that was read with it. @param {string} [why] */
function forget(why = '') {
  open?.watch.end();
  open = undefined;
  // The views still show data that was read with the token.
  details.clear();
  refund.clear();
  history.clear();
  render(createSession(openGateway('', { base: BASE })));
  page.hidden = true;
  signIn.hidden = false;
  submit.disabled = false;
  say(submit, 'Open console');
  input.value = '';
  problem.textContent = why;
  document.title = TITLE;
  input.focus();
}

byId('token-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  const token = input.value.trim();
  input.value = '';
  if (TOKEN.test(token)) begin(token);
  else {
    problem.textContent = 'A token is 1 to 512 visible ASCII characters without spaces.';
    input.focus();
  }
});
byId('forget', HTMLButtonElement).addEventListener('click', () => forget());
byId('retry', HTMLButtonElement).addEventListener('click', () => void open?.watch.now());
older.addEventListener('click', async () => {
  if (open === undefined) return;
  const { session } = open;
  older.disabled = true;
  try {
    await session.readOlder();
    if (open?.session === session) render(session);
  } catch (thrown) {
    announce(thrown instanceof Refusal ? thrown.message : 'The older receipts could not be read');
  } finally {
    older.disabled = false;
  }
});
document.addEventListener('visibilitychange', () => void open?.watch.now());
// The browser's cache may restore a page that was left: it must not have the token.
window.addEventListener('pagehide', () => forget());
input.focus();

/** Signs and words of each status; the colour only repeats them. */
const STATUS = {
  pass: { sign: '✓', word: 'ready', tone: 'good' },
  warn: { sign: '!', word: 'warning', tone: 'warn' },
  fail: { sign: '✕', word: 'failing', tone: 'bad' },
};
/** Without an answer the state of a component is not known. */
const UNKNOWN = { sign: '?', word: 'unknown', tone: 'unknown' };

export function readinessView() {
  const list = byId('checks', HTMLUListElement);
  let shown = '';
  /** @param {Session} session */
  return ({ facts: { readiness, readinessAnswered } }) => {
    const now = JSON.stringify([readiness, readinessAnswered]);
    if (now === shown) return;
    shown = now;
    if (readiness === undefined) {
      list.replaceChildren();
      return;
    }
    /** @type {typeof known} */
    const check = readinessAnswered ? known : unknown;
    const { ready, store, backend, adapters, paymentProviders, authorizationProviders } = readiness;
    list.replaceChildren(
      check('Gateway', { name: '', status: ready ? 'pass' : 'fail' }),
      check('Store', store),
      check('Backend', { ...backend, name: '' }),
      ...adapters.map((adapter) => check('Adapter', adapter)),
      ...paymentProviders.map((provider) => check('Payments', provider)),
      ...authorizationProviders.map((provider) => check('Mandates', provider)),
    );
  };
}

/**
 * @param {string} kind
 * @param {ReadinessCheck} found
 */
function known(kind, { name, status, detail }) {
  const { sign, word, tone } = STATUS[status] ?? STATUS.fail;
  return entry(kind, name, { sign, tone, word: detail ?? word });
}

/**
 * @param {string} kind
 * @param {ReadinessCheck} found
 */
function unknown(kind, { name }) {
  return entry(kind, name, UNKNOWN);
}

/**
 * @param {string} kind
 * @param {string} name
 * @param {{ readonly sign: string, readonly word: string, readonly tone: string }} shown
 */
function entry(kind, name, { sign, word, tone }) {
  return element(
    'li',
    { 'data-tone': tone },
    element('span', { class: 'sign', 'aria-hidden': 'true' }, sign),
    element('span', { class: 'kind' }, kind),
    ...(name === '' ? [] : [element('span', { class: 'name' }, name)]),
    element('span', { class: 'word' }, word),
  );
}
