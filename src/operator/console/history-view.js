/** Shows the charts of a range, says how far back they reach, and gives them as CSV. */

import { chartView } from './chart-view.js';
import { chartsOf } from './charts.js';
import { CSV_TYPE, chartLines, receiptHead } from './csv.js';
import { byId, element, say } from './dom.js';
import { counted } from './format.js';
import { told, unread } from './history.js';
import { RANGE_KEYS, RANGES, rangeAt, utc } from './ranges.js';

/**
 * @typedef {import('./history.js').History} History
 * @typedef {import('./ranges.js').RangeKey} RangeKey
 * @typedef {import('./session.js').Session} Session
 */

/** @param {(text: string) => void} announce */
export function historyView(announce) {
  const panel = byId('history', HTMLElement);
  const ranges = byId('history-ranges', HTMLFieldSetElement);
  const again = byId('history-again', HTMLButtonElement);
  const progress = byId('history-progress', HTMLProgressElement);
  const note = byId('history-note', HTMLParagraphElement);
  const missing = byId('history-missing', HTMLUListElement);
  const charts = byId('charts', HTMLDivElement);
  const receiptsFile = byId('receipts-file', HTMLButtonElement);
  const chartsFile = byId('charts-file', HTMLButtonElement);
  /** @type {Session | undefined} */
  let session;
  /** @type {RangeKey} */
  let chosen = 'day';
  /** @type {{ stopped: boolean } | undefined} */
  let reading;
  /** @type {History | undefined} */
  let read;
  let link = '';

  const buttons = RANGE_KEYS.map((key) => {
    const button = element('button', { type: 'button', 'aria-label': RANGES[key].name }, RANGES[key].short);
    button.addEventListener('click', () => void readAndTell(key));
    return { key, button };
  });
  ranges.append(...buttons.map(({ button }) => button));

  const paint = () => {
    for (const { key, button } of buttons) button.setAttribute('aria-pressed', String(key === chosen));
    panel.setAttribute('aria-busy', String(reading !== undefined));
    progress.classList.toggle('idle', reading === undefined);
    say(again, reading === undefined ? 'Read again' : 'Stop');
    for (const file of [receiptsFile, chartsFile]) file.disabled = read === undefined;
  };

  /** @param {History} history */
  const draw = (history) => {
    const open = [...charts.querySelectorAll('[data-chart]:has([open])')].map((chart) =>
      chart.getAttribute('data-chart'),
    );
    const views = chartsOf(history).map((chart) => chartView(chart, history, point));
    /** @param {number | undefined} bucket */
    function point(bucket) {
      for (const { show } of views) show(bucket);
    }
    missing.replaceChildren(...told(history).map((sentence) => element('li', {}, sentence)));
    charts.replaceChildren(...views.map(({ view }) => view));
    for (const table of charts.querySelectorAll('details'))
      table.open = open.includes(table.closest('[data-chart]')?.getAttribute('data-chart') ?? '');
  };

  /** @param {RangeKey} key */
  const readRange = async (key) => {
    if (session === undefined) return;
    const mine = { stopped: false };
    reading = mine;
    chosen = key;
    const range = rangeAt(key, Date.now());
    progress.value = 0;
    say(note, `Reading ${RANGES[key].name}`);
    paint();
    const history = await session.readHistory(range, {
      going: () => reading === mine && !mine.stopped,
      onPage({ receipts, events, back }) {
        if (reading !== mine) return;
        progress.value = share(range, back) / 2 + (events > 0 ? 0.5 : 0);
        say(note, `Reading: ${entries({ receipts, events })}, back to ${utc(back)}`);
      },
    });
    // Another range was chosen meanwhile, or the token was forgotten.
    if (reading !== mine) return;
    reading = undefined;
    read = history;
    say(note, readWords(history));
    draw(history);
    paint();
  };

  /** @param {RangeKey} key */
  const readAndTell = async (key) => {
    announce(`Reading ${RANGES[key].name}`);
    await readRange(key);
    if (reading === undefined && read !== undefined) announce([`${readWords(read)}.`, ...told(read)].join(' '));
  };

  /**
   * @param {string} what
   * @param {(history: History) => readonly BlobPart[]} parts
   */
  const save = (what, parts) => {
    if (read === undefined) return;
    URL.revokeObjectURL(link);
    link = URL.createObjectURL(new Blob([...parts(read)], { type: CSV_TYPE }));
    const until = new Date(read.at).toISOString().slice(0, 16).replaceAll(/[-:]/g, '');
    element('a', {
      href: link,
      download: `${what}-${RANGES[read.range.key].name.replace(' ', '-')}-${until}Z.csv`,
    }).click();
  };

  again.addEventListener('click', () => {
    if (reading === undefined) void readAndTell(chosen);
    else reading.stopped = true;
  });
  receiptsFile.addEventListener('click', () => save('receipts', ({ rows }) => [receiptHead(), ...rows]));
  chartsFile.addEventListener('click', () => save('charts', (history) => [chartLines(history, chartsOf(history))]));

  const clear = () => {
    session = undefined;
    reading = undefined;
    read = undefined;
    chosen = 'day';
    URL.revokeObjectURL(link);
    say(note, '');
    draw(unread(rangeAt(chosen, Date.now()), Date.now()));
    missing.replaceChildren();
    paint();
  };
  clear();
  return {
    /** Reads the range that is shown first. @param {Session} now */
    begin(now) {
      session = now;
      void readRange(chosen);
    },
    /** Ends reading, and forgets what was read. */
    clear,
  };
}

/**
 * How much of a range lies after a moment, 0 to 1.
 *
 * @param {import('./ranges.js').Range} range
 * @param {number} at Milliseconds.
 */
function share({ from, to }, at) {
  return Math.min(1, (to - at) / (to - from));
}

/** @param {{ readonly receipts: number, readonly events: number }} read */
function entries({ receipts, events }) {
  return `${counted(receipts, 'receipt')}, ${counted(events, 'event')}`;
}

/** @param {History} history */
function readWords({ receipts, events, at }) {
  return `${entries({ receipts: receipts.entries, events: events.entries })} until ${utc(at)} UTC`;
}
