/** Shows what `/ready` answers, and the same components as unknown while it does not answer. */

import { byId, element } from './dom.js';

/**
 * @typedef {import('../../telemetry/health/monitor.ts').ReadinessCheck} ReadinessCheck
 * @typedef {import('./session.js').Session} Session
 */

/** Shown by sign and word; the colour only repeats it. */
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
