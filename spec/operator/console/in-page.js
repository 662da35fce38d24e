/** What the specs ask the page itself; these functions run in the browser. */

/**
 * Everything that the page keeps where a token could be.
 *
 * @returns {string}
 */
export function everythingKept() {
  const fields = [...document.querySelectorAll('input, textarea')].map(
    (field) => /** @type {HTMLInputElement} */ (field).value,
  );
  const stores = [localStorage, sessionStorage].map((store) => JSON.stringify({ ...store }));
  const state = [location.href, document.cookie, window.name, JSON.stringify(history.state), document.title];
  return [document.documentElement.outerHTML, ...fields, ...stores, ...state].join('\n');
}

/** Begins to count what the policy of the page forbids, and what hostile text could reach. */
export function listen() {
  const seen = /** @type {string[]} */ ([]);
  Object.assign(window, { violations: seen, hits: 0 });
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, sourceFile }) =>
    seen.push(`${effectiveDirective} ${sourceFile}`),
  );
}

/** @returns {{ readonly violations: readonly string[], readonly hits: number }} */
export function observed() {
  const { violations, hits } = /** @type {any} */ (window);
  return { violations, hits };
}

/**
 * Tries the ways in which text becomes code; returns the result of each.
 *
 * @returns {readonly string[]}
 */
export function tryCode() {
  /** @type {readonly (() => void)[]} */
  const attempts = [
    () => {
      document.body.innerHTML += '<img src=x onerror="hits += 1">';
    },
    () => {
      const script = document.createElement('script');
      script.textContent = 'hits += 1';
      document.body.append(script);
    },
    () => {
      const script = document.createElement('script');
      script.append('hits += 1');
      document.body.append(script);
    },
    () => {
      const button = document.createElement('button');
      button.setAttribute('onclick', 'hits += 1');
      button.click();
    },
    () => {
      setTimeout(/** @type {any} */ ('hits += 1'), 0);
    },
    () => void import(/** @type {any} */ ('data:text/javascript,hits += 1')).catch(() => undefined),
    () => void fetch('http://127.0.0.1:9/stolen').catch(() => undefined),
    () => {
      new Image().src = 'http://127.0.0.1:9/stolen';
    },
    () => {
      const form = document.createElement('form');
      form.action = 'http://127.0.0.1:9/stolen';
      document.body.append(form);
      form.submit();
    },
  ];
  return attempts.map((attempt) => {
    try {
      attempt();
      return 'nothing thrown';
    } catch (thrown) {
      return thrown instanceof Error ? thrown.name : String(thrown);
    }
  });
}

/** Hides the page, or shows it again. @param {boolean} hidden */
export function hide(hidden) {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}

/** What the operator would paste. */
export function clipboardText() {
  return navigator.clipboard.readText();
}

/** The name of the element with the focus. */
export function focused() {
  const element = document.activeElement;
  if (element === null) return '';
  const label =
    element.getAttribute('aria-label') ??
    (element.id && document.querySelector(`label[for="${element.id}"]`)?.textContent);
  return `${element.localName} ${label || element.id || element.textContent?.trim()}`;
}

/** Whether the focus is visible. */
export function focusSeen() {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement ?? document.body);
  return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
}

/**
 * Whether the policy was seen at work under each of these directives.
 *
 * @param {readonly string[]} directives
 */
export function reportedAll(directives) {
  const { violations } = /** @type {any} */ (window);
  return directives.every((directive) => violations.some((/** @type {string} */ seen) => seen.startsWith(directive)));
}

/** Leaves the page, which the browser's cache may keep. */
export function leave() {
  window.dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }));
}

/** How far a bar of progress is, 0 to 1. @param {Element} bar */
export function progressShown(bar) {
  return /** @type {HTMLProgressElement} */ (bar).value;
}
