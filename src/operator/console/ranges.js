/**
 * The stretches of time that the page looks back on, cut into buckets at round times of UTC: all
 * operators of a shop see the same sums, and they are those of receipts, events and the chain.
 *
 * @typedef {(typeof RANGE_KEYS)[number]} RangeKey
 *
 * @typedef {object} Range
 * @property {RangeKey} key
 * @property {number} from Milliseconds, the beginning of the first bucket.
 * @property {number} to Milliseconds, the end of the last bucket, which is not over yet.
 * @property {number} stepMs Length of a bucket.
 * @property {number} buckets
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

export const RANGE_KEYS = /** @type {const} */ (['hour', 'day', 'week', 'month']);

/** `labelMs`: between two labels of the axis of time. */
export const RANGES = {
  hour: {
    short: '1 h',
    name: '1 hour',
    bucket: '2 minutes',
    stepMs: 2 * MINUTE_MS,
    buckets: 30,
    labelMs: 10 * MINUTE_MS,
  },
  day: { short: '24 h', name: '24 hours', bucket: 'hour', stepMs: HOUR_MS, buckets: 24, labelMs: 6 * HOUR_MS },
  week: { short: '7 d', name: '7 days', bucket: '6 hours', stepMs: 6 * HOUR_MS, buckets: 28, labelMs: 2 * DAY_MS },
  month: { short: '30 d', name: '30 days', bucket: 'day', stepMs: DAY_MS, buckets: 30, labelMs: 5 * DAY_MS },
};

/**
 * The range that ends with the bucket of `now`.
 *
 * @param {RangeKey} key
 * @param {number} now Milliseconds.
 * @returns {Range}
 */
export function rangeAt(key, now) {
  const { stepMs, buckets } = RANGES[key];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { key, from: to - buckets * stepMs, to, stepMs, buckets };
}

/**
 * The bucket of a moment; undefined outside the range, and for no moment at all.
 *
 * @param {Range} range
 * @param {number} at Milliseconds.
 */
export function bucketOf({ from, to, stepMs }, at) {
  return at >= from && at < to ? Math.floor((at - from) / stepMs) : undefined;
}

/**
 * When a bucket begins, milliseconds.
 *
 * @param {Range} range
 * @param {number} bucket From 0.
 */
export function beginOf({ from, stepMs }, bucket) {
  return from + bucket * stepMs;
}

/**
 * A moment as the page tells it, in UTC: `4 Feb` for a bucket of a day, else `4 Feb 14:05`.
 *
 * @param {number} at Milliseconds.
 * @param {number} [stepMs] Length of the bucket that begins then.
 */
export function utc(at, stepMs = 0) {
  const date = new Date(at);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return stepMs >= DAY_MS ? day : `${day} ${date.toISOString().slice(11, 16)}`;
}

/**
 * The labels of the axis of time: the hour, or the day where one begins.
 *
 * @param {Range} range
 * @returns {readonly { readonly bucket: number, readonly text: string }[]}
 */
export function labels(range) {
  const { labelMs } = RANGES[range.key];
  return Array.from({ length: range.buckets }, (_, bucket) => ({ bucket, at: beginOf(range, bucket) }))
    .filter(({ at }) => at % labelMs === 0)
    .map(({ bucket, at }) => ({ bucket, text: at % DAY_MS === 0 ? utc(at, DAY_MS) : utc(at).slice(-5) }));
}
