/**
 * Shows the charts of a range. A chart is drawn by hand as SVG, in percents of its frame: it
 * follows the width of the page, and no text is stretched. Below it stand the numbers of the whole
 * range, or of the bucket that is pointed at, and a table.
 *
 * @typedef {import('./charts.js').Chart} Chart
 * @typedef {import('./history.js').History} History
 * @typedef {import('./history.js').RangeKey} RangeKey
 * @typedef {import('./history.js').Range} Range
 * @typedef {import('./receipts.js').Decimal} Decimal
 * @typedef {import('./session.js').Session} Session
 */

import { chartLines, chartsOf, known } from './charts.js';
import { byId, drawing, element, nameRoles, say } from './dom.js';
import { counted } from './format.js';
import { beginOf, CSV_TYPE, labels, RANGE_KEYS, RANGES, rangeAt, receiptHead, told, unread, utc } from './history.js';
import { inDigits, larger, percent, plus, roundUp, ZERO } from './receipts.js';

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
 * @param {import('./history.js').Range} range
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

/** Part of its bucket that a bar fills. */
const BAR = 0.76;
/** Least height of a bar, percent: the least of many sales is to be seen too. */
const LEAST_HEIGHT = 1.5;
/** Distance of labels from the sides, percent: nearer ones would leave the frame, or meet `UTC`. */
const LABEL_MARGIN = { left: 16, right: 7 };

/**
 * Draws a chart; `show` shows the numbers of the range, or of the bucket that is pointed at.
 *
 * @param {Chart} chart
 * @param {History} history
 * @param {(bucket: number | undefined) => void} point Tells which bucket is pointed at.
 */
export function chartView(chart, { range, at }, point) {
  const top = topOf(chart);
  const moment = drawing('text', { class: 'moment', x: '100%', y: 11 });
  const mark = drawing('rect', { class: 'mark', y: 0, height: '100%', width: `${100 / range.buckets}%`, x: '-100%' });
  const plot = drawing(
    'svg',
    { class: 'plot', role: 'img', 'aria-label': summary(chart, range) },
    drawing('text', { x: 0, y: 11 }, top.units === 0n ? '' : axisText(chart, top)),
    drawing(
      'svg',
      { y: 16, height: 92, class: 'frame' },
      ...unknown(range, chart.reach.since),
      ...['0', '50%'].map((y) => drawing('line', { class: 'grid', x2: '100%', y1: y, y2: y })),
      mark,
      ...(chart.kind === 'bars' ? bars(chart, range, top) : lines(chart, range, top)),
      drawing('line', { class: 'ground', x2: '100%', y1: '100%', y2: '100%' }),
    ),
    moment,
    drawing('text', { x: 0, y: 124 }, 'UTC'),
    ...labels(range).flatMap(({ bucket, text }) => label(middle(range, bucket), text)),
  );
  const numbers = chart.series.map(({ name, tone }) => ({ name, tone, node: element('span', { class: 'amount' }) }));
  const legend = element(
    'ul',
    { class: 'legend' },
    ...numbers.map(({ name, tone, node }) =>
      element('li', { 'data-tone': tone }, element('span', { class: 'swatch' }), name, ' ', node),
    ),
  );
  /** @param {number | undefined} bucket */
  const show = (bucket) => {
    mark.setAttribute('x', bucket === undefined ? '-100%' : `${(100 * bucket) / range.buckets}%`);
    say(moment, bucket === undefined ? '' : momentOf(chart, range, at, bucket));
    for (const [index, { node }] of numbers.entries()) {
      const { total, values } = chart.series[index] ?? { total: undefined, values: [] };
      const value = bucket === undefined ? total : values[bucket];
      say(node, value === undefined ? '–' : chart.text(value));
    }
  };
  show(undefined);
  followPointer(plot, range, point);
  const view = element(
    'section',
    { class: 'chart', 'data-chart': chart.id },
    element('h3', {}, chart.title, ' ', element('span', { class: 'hint' }, unitOf(chart))),
    plot,
    legend,
    tableOf(chart, range, at),
  );
  return { view, show };
}

/**
 * @param {Chart} chart
 * @param {Decimal} top
 */
function axisText({ kind, text }, top) {
  return kind === 'lines' ? text(top) : inDigits(top, 0);
}

/** @param {Chart} chart */
function unitOf({ unit, more }) {
  return [unit, more].filter(Boolean).join(' · ');
}

/** @param {Chart} chart */
function nameOf(chart) {
  return `${chart.title} ${unitOf(chart)}`.trim();
}

/**
 * The round number at the top of the frame; no units where there is nothing to show.
 *
 * @param {Chart} chart
 */
function topOf({ kind, series }) {
  const values = series.map(({ values }) => values.map((value) => value ?? ZERO));
  const highest = kind === 'lines' ? values.flat() : (values[0] ?? []).map((_, bucket) => sum(values, bucket));
  return roundUp(highest.reduce(larger, ZERO));
}

/**
 * @param {readonly (readonly Decimal[])[]} series
 * @param {number} bucket
 */
function sum(series, bucket) {
  return series.map((values) => values[bucket] ?? ZERO).reduce(plus, ZERO);
}

/**
 * The middle of a bucket, percent of the width.
 *
 * @param {Range} range
 * @param {number} bucket
 */
function middle({ buckets }, bucket) {
  return (100 * (bucket + 0.5)) / buckets;
}

/**
 * @param {number} x Percent.
 * @param {string} text
 */
function label(x, text) {
  if (x < LABEL_MARGIN.left || x > 100 - LABEL_MARGIN.right) return [];
  return [drawing('text', { class: 'label', x: `${x}%`, y: 124 }, text)];
}

/**
 * The part of the frame of which the gateway keeps nothing.
 *
 * @param {Range} range
 * @param {number} since Milliseconds.
 */
function unknown({ from, to }, since) {
  if (since <= from) return [];
  const width = `${Math.min(100, (100 * (since - from)) / (to - from))}%`;
  return [
    drawing('rect', { class: 'unknown', width, height: '100%' }),
    drawing('line', { class: 'since', x1: width, x2: width, y2: '100%' }),
  ];
}

/**
 * @param {Chart} chart
 * @param {Range} range
 * @param {Decimal} top
 */
function bars({ series }, range, top) {
  const width = (100 * BAR) / range.buckets;
  const stacked = new Array(range.buckets).fill(0);
  return series.flatMap(({ tone, values }) =>
    values.flatMap((value, bucket) => {
      if (value === undefined || value.units === 0n) return [];
      const height = Math.max(percent(value, top), LEAST_HEIGHT);
      stacked[bucket] += height;
      const x = `${middle(range, bucket) - width / 2}%`;
      const y = `${Math.max(0, 100 - stacked[bucket])}%`;
      return [drawing('rect', { class: 'bar', 'data-tone': tone, x, y, width: `${width}%`, height: `${height}%` })];
    }),
  );
}

/**
 * @param {Chart} chart
 * @param {Range} range
 * @param {Decimal} top
 */
function lines({ series }, range, top) {
  // The first series is drawn last, over the others.
  return series.toReversed().map(({ tone, values }) => {
    const points = values.map((value, bucket) =>
      value === undefined ? undefined : { x: `${middle(range, bucket)}%`, y: `${100 - percent(value, top)}%` },
    );
    return drawing(
      'g',
      { class: 'line', 'data-tone': tone },
      ...points.flatMap((point, bucket) => {
        if (point === undefined) return [];
        const before = points[bucket - 1];
        const dot = drawing('circle', { cx: point.x, cy: point.y, r: 1.75 });
        return before === undefined
          ? [dot]
          : [drawing('line', { x1: before.x, y1: before.y, x2: point.x, y2: point.y }), dot];
      }),
    );
  });
}

/**
 * The chart in one sentence.
 *
 * @param {Chart} chart
 * @param {Range} range
 */
function summary(chart, { key }) {
  const { series, text } = chart;
  const totals = series.map(({ name, total }) => `${name} ${total === undefined ? 'none' : text(total)}`);
  const { name, bucket } = RANGES[key];
  return `${nameOf(chart)}, ${name} by ${bucket}: ${totals.join(', ')}. The table below has every number.`;
}

/**
 * The time of a bucket, and whether its numbers cover a part of the bucket only.
 *
 * @param {Chart} chart
 * @param {Range} range
 * @param {number} at
 * @param {number} bucket
 */
function momentOf({ reach, series }, range, at, bucket) {
  const time = utc(beginOf(range, bucket), range.stepMs);
  const how = known(range, reach, at, bucket);
  if (how === 'whole') return time;
  const nothing = how === 'none' && series.every(({ values }) => values[bucket] === undefined);
  return `${time} (${nothing ? 'not kept' : 'in part'})`;
}

/**
 * The numbers, newest first.
 *
 * @param {Chart} chart
 * @param {Range} range
 * @param {number} at
 */
function tableOf(chart, range, at) {
  const { series, text } = chart;
  const heads = ['Time, UTC', ...series.map(({ name }) => name)];
  const body = Array.from({ length: range.buckets }, (_, bucket) =>
    element(
      'tr',
      {},
      element('td', {}, momentOf(chart, range, at, bucket)),
      ...series.map(({ values }) => {
        const value = values[bucket];
        return element('td', {}, value === undefined ? '–' : text(value));
      }),
    ),
  );
  const name = `${nameOf(chart)} by time`;
  const table = element(
    'table',
    { 'aria-label': name },
    element('thead', {}, element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head)))),
    element('tbody', {}, ...body.reverse()),
  );
  nameRoles(table);
  // A part of the page that scrolls has to be reached by keyboard.
  const scroll = element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': name }, table);
  return element('details', {}, element('summary', { 'aria-label': `Table: ${nameOf(chart)}` }, 'Table'), scroll);
}

/**
 * A mouse points while it is over the drawing; a finger points with a touch, until it touches the
 * same bucket again.
 *
 * @param {SVGElement} plot
 * @param {Range} range
 * @param {(bucket: number | undefined) => void} point
 */
function followPointer(plot, { buckets }, point) {
  /** @type {number | undefined} */
  let touched;
  /** @param {PointerEvent} event */
  const bucketAt = ({ clientX }) => {
    const { left, width } = plot.getBoundingClientRect();
    return Math.min(buckets - 1, Math.max(0, Math.floor((buckets * (clientX - left)) / width)));
  };
  plot.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'mouse') point(bucketAt(event));
  });
  plot.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse') point(undefined);
  });
  plot.addEventListener('click', (event) => {
    if (!(event instanceof PointerEvent) || event.pointerType === 'mouse') return;
    const bucket = bucketAt(event);
    touched = bucket === touched ? undefined : bucket;
    point(touched);
  });
}
