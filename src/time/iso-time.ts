/** The present time as ISO 8601 text, which several writers need within one millisecond. */

let lastMs = Number.NaN;
let lastText = '';

/**
 * A time as ISO 8601 with milliseconds and `Z`. The last text is kept: making one takes longer than
 * the rest of an event.
 * @param ms Unix milliseconds. @throws RangeError beyond what a Date holds
 */
export function isoTime(ms: number = Date.now()): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}
