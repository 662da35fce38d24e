import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { FORMATS } from '../../../src/resources/patterns/formats.ts';
import { MAX_MATCHED_LENGTH } from '../../../src/resources/schemas/closed-objects.ts';
import { attack, measured, proven } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';
import { blockedBy } from './blocking.ts';
import { ENTRANCES } from './entrances.ts';
import { HOST, head, JSON_TYPE } from './framing-case.ts';
import { PATTERNS, slowTexts } from './slow-patterns.ts';

const NAMES = Object.keys(FORMATS);

const MAX_BLOCK_MS = 50;
/** Far beyond the longest text that is matched, and exactly that length. */
const LENGTHS = [50_000, MAX_MATCHED_LENGTH];

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

  // biome-ignore lint/suspicious/noTemplateCurlyInString: the title as it is spelled there.
  proven('B11', 'spec/resources/patterns/catastrophes.spec.ts', 'do not block a turn: ${catastrophe[0].slice(0, 60)}');
  proven(
    'B11',
    'spec/resources/patterns/linear.spec.ts',
    'means what the ordinary engine means: random patterns on short texts',
  );
});
