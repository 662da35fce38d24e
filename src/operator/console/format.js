/** Formats times, hashes and counts. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * A measured duration: `48 ms`, `1.20 s`, `2 min 5 s`.
 *
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1_000).toFixed(2)} s`;
  return `${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / 1_000)} s`;
}

/**
 * A rounded time span: `23 h 12 min`, `4 min`, `under a minute`.
 *
 * @param {number} ms
 */
export function span(ms) {
  if (ms < MINUTE_MS) return 'under a minute';
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 48 * HOUR_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
  return `${Math.floor(ms / (24 * HOUR_MS))} days`;
}

/**
 * Local time, with the day unless it is today.
 *
 * @param {number} at Milliseconds.
 * @param {number} now
 */
export function clock(at, now) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return 'unknown';
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, '0');
}

/**
 * Both ends of an address or hash; short texts whole.
 *
 * @param {string} text
 */
export function shortened(text) {
  return text.length <= 14 ? text : `${text.slice(0, 6)}…${text.slice(-4)}`;
}

/**
 * `1 call`, `2 calls`.
 *
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
