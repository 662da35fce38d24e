import { byId, element } from './dom.js';

/**
 * @typedef {import('../probes/readiness.ts').ReadinessCheck} ReadinessCheck
 * @typedef {import('./session.js').Session} Session
 */

/** Told by sign and word; the colour only repeats it. */
const STATUS = {
  pass: { sign: '✓', word: 'ready', tone: 'good' },
  warn: { sign: '!', word: 'warning', tone: 'warn' },
  fail: { sign: '✕', word: 'failing', tone: 'bad' },
};

/** Shows what `/ready` says. */
export function readinessView() {
  const list = byId('checks', HTMLUListElement);
  let shown = '';
  /** @param {Session} session */
  return ({ facts: { readiness } }) => {
    const now = JSON.stringify(readiness);
    if (readiness === undefined || now === shown) return;
    shown = now;
    const { ready, store, adapters, paymentProviders, authorizationProviders } = readiness;
    list.replaceChildren(
      check('Gateway', { name: '', status: ready ? 'pass' : 'fail' }),
      check('Store', store),
      ...adapters.map((adapter) => check('Front', adapter)),
      ...paymentProviders.map((provider) => check('Payments', provider)),
      ...authorizationProviders.map((provider) => check('Mandates', provider)),
    );
  };
}

/**
 * @param {string} kind
 * @param {ReadinessCheck} found
 */
function check(kind, { name, status, detail }) {
  const { sign, word, tone } = STATUS[status] ?? STATUS.fail;
  return element(
    'li',
    { 'data-tone': tone },
    element('span', { class: 'sign', 'aria-hidden': 'true' }, sign),
    element('span', { class: 'kind' }, kind),
    ...(name === '' ? [] : [element('span', { class: 'name' }, name)]),
    element('span', { class: 'word' }, detail ?? word),
  );
}
