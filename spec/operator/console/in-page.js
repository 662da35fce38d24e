/** What the specs ask and measure on the page itself; these functions run in the browser. */

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

/** What the specs measure on the page; these functions run in the browser. */

/** How much wider than the window the page is, in pixels. */
export function overflow() {
  const page = document.scrollingElement ?? document.documentElement;
  return page.scrollWidth - page.clientWidth;
}

/**
 * Every visible text whose contrast with what lies behind it is below `least`.
 *
 * @param {number} least Of WCAG 2, 1 to 21.
 * @returns {{ readonly texts: number, readonly faint: readonly string[] }}
 */
export function faintTexts(least) {
  /** @param {string} color */
  const channels = (color) => {
    const [red = 0, green = 0, blue = 0, alpha = 1] = (color.match(/[\d.]+/g) ?? []).map(Number);
    return { rgb: [red, green, blue], alpha };
  };
  /** @param {readonly number[]} rgb */
  const luminance = (rgb) => {
    const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  /** @param {Element | null} element */
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const { rgb, alpha } = channels(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  let texts = 0;
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent?.trim() ?? '';
    if (element === null || text === '' || !element.checkVisibility() || element.closest('.unseen, .skip, option'))
      continue;
    texts += 1;
    const foreground = luminance(channels(getComputedStyle(element).color).rgb);
    const back = luminance(behind(element));
    const contrast = (Math.max(foreground, back) + 0.05) / (Math.min(foreground, back) + 0.05);
    if (contrast < least) faint.push(`${text.slice(0, 30)} ${contrast.toFixed(2)}`);
  }
  return { texts, faint };
}

/**
 * Texts of the page that are cut off by a box, unless they end with an ellipsis.
 *
 * @returns {readonly string[]}
 */
export function cutTexts() {
  /** @param {Element} element */
  const clipped = (element) => {
    const { left, right } = element.getBoundingClientRect();
    for (let at = element.parentElement; at !== null; at = at.parentElement) {
      const frame = at.getBoundingClientRect();
      const ends = getComputedStyle(at).overflowX !== 'visible';
      if (ends && (right > frame.right + 1 || left < frame.left - 1)) return true;
    }
    return false;
  };
  return [...document.querySelectorAll('h1, h2, p, dt, dd, td, span, li, button')]
    .filter((element) => element.checkVisibility() && !element.closest('.unseen, .skip, .request'))
    .filter((element) => clipped(element) || (element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1))
    .map((element) => `${element.localName} ${element.textContent?.slice(0, 30)}`);
}

/**
 * Whether the middle of an element is this element or a part of it, and not something above it.
 *
 * @param {Element} element
 */
export function uncovered(element) {
  const { left, top, width, height } = element.getBoundingClientRect();
  const there = document.elementFromPoint(left + width / 2, top + height / 2);
  return there !== null && (element.contains(there) || there.contains(element));
}

/** @param {Element} element */
export function animationOf(element) {
  return getComputedStyle(element).animationName;
}

/**
 * The paint of every part of the drawings that has a meaning, and of the panel behind it.
 *
 * @returns {readonly { readonly part: string, readonly paint: string, readonly behind: string }[]}
 */
export function paints() {
  const panel = document.querySelector('#history') ?? document.body;
  const behind = getComputedStyle(panel).backgroundColor;
  /** @type {readonly (readonly [string, 'fill' | 'stroke' | 'backgroundColor'])[]} */
  const parts = [
    ['.bar', 'fill'],
    ['.line line', 'stroke'],
    ['.line circle', 'fill'],
    ['.ground', 'stroke'],
    ['.since', 'stroke'],
    ['.swatch', 'backgroundColor'],
  ];
  return parts.flatMap(([part, property]) =>
    [...panel.querySelectorAll(part)].map((node) => ({ part, paint: getComputedStyle(node)[property], behind })),
  );
}

/** The colour behind everything on the page. */
export function background() {
  return getComputedStyle(document.body).backgroundColor;
}
