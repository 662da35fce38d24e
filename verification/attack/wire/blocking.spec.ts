import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { FORMATS } from '../../../src/resources/patterns/formats.ts';
import { MAX_MATCHED_LENGTH } from '../../../src/resources/schemas/closed-objects.ts';
import { attack, measured } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';
import { converse, ENTRANCES, HOST, head, JSON_TYPE } from './conversation.ts';

const NAMES = Object.keys(FORMATS);

const MAX_BLOCK_MS = 50;
/** Far beyond the longest text that is matched, and exactly that length. */
const LENGTHS = [50_000, MAX_MATCHED_LENGTH];

/**
 * How often an input is sent again: a garbage collection falls into one measurement, not into all.
 */
const LOOKS = 3;
/** Long enough for any input; the figure shows the time. */
const PATIENCE_MS = 60_000;
/** Below this no measurement is repeated, milliseconds. */
const SHORT_MS = 5;

/**
 * How long these bytes keep the event loop, milliseconds at most: the time for which the gateway's
 * main thread has the processor from when they are sent until they are answered. Wall time would
 * also count other processes. The least of several measurements.
 */
async function blockedBy({ url, gateway }: Target, bytes: Buffer): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LOOKS && least > SHORT_MS; look += 1) {
    const hostile = await converse(url);
    const before = onProcessorMs(gateway.pid);
    hostile.send(bytes);
    await hostile.until(1, PATIENCE_MS);
    least = Math.min(least, onProcessorMs(gateway.pid) - before);
    hostile.close();
  }
  return least;
}

/** Of the main thread; the first number of its schedstat is in nanoseconds. */
function onProcessorMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** Valid patterns that are known to be slow in some engine. */
const PATTERNS: Readonly<Record<string, string>> = {
  alternatives: '^(a|a)*$',
  overlapping: '^(a|aa)+$',
  optional: '^(a?b?c?d?)?$',
  polynomial: 'a*a*a*a*a*a*b',
  trimming: '\\s*$',
  email: '^[a-z0-9._]+@[a-z0-9-]+\\.[a-z0-9.-]+$',
  words: '^[a-z]+ [a-z]+ [a-z]+ [a-z]+$',
  version: '^\\d+\\.\\d+\\.\\d+[-+.\\w]*$',
  digits: '^\\d{1,3}(,\\d{3})*(\\.\\d+)?$',
  wide: '.*.*=.*',
  classes: '[^=]*[^=]*=',
  groups: '(.*)(.*)=',
  digest: '^(?:[a-z]|[a-z0-9]){64}$',
  counted: '^(a?){60}a{60}$',
  nested: '^(a+)+$',
  lists: '^(?:.*?,){13}P',
  'many ranges': '(?:[\\w.:-]|[^a]){200}!',
};

/** Texts that make a backtracking engine retry; the end of each prevents a match. */
const PUMPS: readonly (readonly [before: string, pumped: string, after: string])[] = [
  ['', 'a', '!'],
  ['', 'aa', '\u0000'],
  ['', ' ', 'x'],
  ['', '1', 'x'],
  ['', '1,111', 'x'],
  ['', '0.', '.'],
  ['', '-', '\n'],
  ['', 'a.', '@'],
  ['a@', 'a.a-', '\n'],
  ['a', '@', 'a'],
  ['http://', 'a:@', '['],
  ['http://[', '::', ']'],
  ['//', '%41', '%'],
  ['', '{a}', '{'],
  ['', ':', ':'],
  ['', '1:', 'z'],
  ['', '/~0', '~'],
  ['#', '/%41', '%'],
  ['P', '1D', 'T'],
  ['2020-01-01T00:00:00.', '0', 'x'],
  ['', '(a*)*', '('],
  ['', '[', '\\'],
  ['', 'QUFB', '='],
  ['', '=', '\n'],
  ['', 'a a ', '!'],
];

/** All of them at `length` characters. */
function slowTexts(length: number): readonly string[] {
  return PUMPS.map(([before, pumped, after]) => {
    const room = length - before.length - after.length;
    return before + pumped.repeat(Math.floor(room / pumped.length)) + after;
  });
}

describe('inputs that are slow to check', () => {
  let target: Target;
  before(async () => {
    const properties = Object.fromEntries([
      ...NAMES.map((format) => [`format-${format}`, { type: 'string', format }]),
      ...Object.entries(PATTERNS).map(([name, pattern]) => [`pattern-${name}`, { type: 'string', pattern }]),
      ['many', { type: 'array', items: { type: 'string', pattern: PATTERNS['many ranges'] } }],
      ['negated', { type: 'string', not: { pattern: PATTERNS['alternatives'] } }],
    ]);
    const unique = { type: 'array', uniqueItems: true, items: { type: 'object', additionalProperties: true } };
    const resource = {
      name: 'Matched',
      description: 'Inputs under patterns and formats',
      inputSchema: {
        type: 'object',
        properties: { ...properties, unique },
        patternProperties: { '^(x|xx)+$': { type: 'string' } },
      },
      backend: { method: 'POST', path: '/echo' },
      pricing: { type: 'free' },
      expose: ['http'],
      payments: [],
    };
    target = await openTarget({ resources: { matched: resource } });
  });
  after(() => target.stop());

  const invoke = (input: object): Buffer => {
    const body = JSON.stringify(input);
    const line = 'POST /api/resources/matched/invoke HTTP/1.1';
    return Buffer.from(head(line, HOST, JSON_TYPE, `Content-Length: ${Buffer.byteLength(body)}`) + body);
  };
  /** A real block repeats: a block that does not repeat came from the busy machine. */
  const blocks = async (input: object): Promise<number> => {
    let least = await blockedBy(target, invoke(input));
    for (let again = 0; again < 4 && least > MAX_BLOCK_MS; again += 1)
      least = Math.min(least, await blockedBy(target, invoke(input)));
    return least;
  };
  const longest = async (inputs: readonly object[]): Promise<number> => {
    let most = 0;
    for (const input of inputs) most = Math.max(most, await blocks(input));
    return most;
  };

  for (const length of LENGTHS) {
    attack('B11', `every format stays fast on texts of ${length} characters`, async (t) => {
      const texts = slowTexts(length);
      const inputs = NAMES.flatMap((format) => texts.map((text) => ({ [`format-${format}`]: text })));
      const most = await longest(inputs);
      measured(t, 'longest block of the event loop, ms', most);
      assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
    });

    attack('B11', `every pattern of the fixtures stays fast on texts of ${length} characters`, async (t) => {
      const names = [...Object.keys(PATTERNS).map((name) => `pattern-${name}`), 'negated'];
      const most = await longest(names.flatMap((name) => slowTexts(length).map((text) => ({ [name]: text }))));
      measured(t, 'longest block of the event loop, ms', most);
      assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
    });
  }

  attack('B11', 'many texts under one pattern share one budget', async (t) => {
    const lengths = [64, 1_000, MAX_MATCHED_LENGTH];
    const inputs = lengths.map((length) => ({ many: slowTexts(length).flatMap((text) => Array(8).fill(text)) }));
    const most = await longest(inputs);
    measured(t, 'longest block of the event loop, ms', most);
    assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
  });

  attack('B11', 'names under a pattern, and many of them, stay fast', async (t) => {
    const long = { [`${'x'.repeat(4_000)}y`]: '' };
    const many = Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`${'x'.repeat(40)}${at}`, '']));
    const most = await longest([long, many]);
    measured(t, 'longest block of the event loop, ms', most);
    assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
  });

  attack('B11', 'items that must all be different stay fast', async (t) => {
    const items = Array.from({ length: 8_000 }, (_, at) => ({ a: at }));
    const most = await longest([{ unique: items }]);
    measured(t, 'longest block of the event loop, ms', most);
    assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
  });

  attack('B7', 'the deepest and the widest bodies stay fast on every channel', async (t) => {
    let most = 0;
    for (const entrance of ENTRANCES) {
      const room = 262_144 - entrance.around('').length;
      const wide = `{${Array.from({ length: 9_000 }, (_, at) => `"${at}":${at}`).join(',')}}`;
      const inputs = [
        '['.repeat(room),
        '['.repeat(room / 2) + ']'.repeat(room / 2),
        wide,
        `{"a":[${'1e1,'.repeat(60_000)}1]}`,
        `{"a":"${'\\u0061'.repeat(40_000)}"}`,
      ];
      for (const input of inputs)
        most = Math.max(most, await blockedBy(target, entrance.request(entrance.around(input))));
    }
    measured(t, 'longest block of the event loop, ms', most);
    assert.ok(most <= MAX_BLOCK_MS, `${most} ms`);
  });
});
