// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { MAX_JSON_DEPTH } from '../../../src/json/strict.ts';
import { MAX_BODY_BYTES } from '../../../src/server/http/body.ts';
import { attack, proven } from '../catalogue.ts';
import { formOf, openTarget, type Target } from '../target.ts';
import { answerTo, ENTRANCES, type Entrance, isRefusal, type WireAnswer } from './conversation.ts';

const deep = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

/** The unpacked size of the smallest bomb, bytes. */
const BOMB_BYTES = 48 * 1024 * 1024;
/**
 * How much memory the answers to bombs may leave behind, bytes: less than a single one unpacks to.
 */
const MAX_GROWTH_BYTES = BOMB_BYTES / 2;

type Bomb = readonly [coding: string, bytes: Buffer];
let made: readonly Bomb[] | undefined;

/**
 * Small bodies that unpack to large ones, with their Content-Encoding; made once, because it takes
 * a second.
 */
function bombs(): readonly Bomb[] {
  if (made !== undefined) return made;
  const plain = Buffer.alloc(BOMB_BYTES, 0x20);
  const gzip = gzipSync(plain, { level: 1 });
  made = [
    ['gzip', gzip],
    ['x-gzip', gzip],
    ['GZIP', gzip],
    ['deflate', deflateSync(plain, { level: 1 })],
    ['br', brotliCompressSync(plain)],
    ['zstd', zstdCompressSync(plain)],
    ['gzip, gzip', gzipSync(gzip)],
    ['identity, gzip', gzip],
    ['chunked', Buffer.from('{}')],
  ];
  return made;
}

/** An input that no channel may accept; text is UTF-8. */
interface HostileInput {
  readonly name: string;
  readonly input: string | Buffer;
}

const bytes = (...given: readonly number[]): Buffer => Buffer.from(given);
const inString = (inner: Buffer): Buffer => Buffer.concat([Buffer.from('{"a":"'), inner, Buffer.from('"}')]);

/** Bytes that are no UTF-8, or that declare another encoding. */
const ENCODINGS: readonly HostileInput[] = [
  { name: 'a byte order mark inside', input: Buffer.concat([bytes(0xef, 0xbb, 0xbf), Buffer.from('{}')]) },
  { name: 'UTF-16', input: Buffer.from('{"a":1}', 'utf16le') },
  { name: 'UTF-7', input: '+AHsAIgBhACIAOgAxAH0-' },
  { name: 'a byte that begins nothing', input: inString(bytes(0x80)) },
  { name: 'a sequence that breaks off', input: inString(bytes(0xe2, 0x82)) },
  { name: 'an overlong slash', input: inString(bytes(0xc0, 0xaf)) },
  { name: 'an overlong NUL', input: inString(bytes(0xc0, 0x80)) },
  { name: 'an encoded surrogate', input: inString(bytes(0xed, 0xa0, 0x80)) },
  { name: 'beyond U+10FFFF', input: inString(bytes(0xf4, 0x90, 0x80, 0x80)) },
  { name: 'Latin-1', input: inString(bytes(0xfc)) },
  { name: 'a NUL between members', input: Buffer.from('{"a":1\0}') },
  { name: 'a lone high surrogate', input: '{"a":"\\ud800"}' },
  { name: 'a lone low surrogate', input: '{"a":"\\udc00"}' },
  { name: 'surrogates in the wrong order', input: '{"a":"\\udc00\\ud800"}' },
  { name: 'a lone surrogate as a name', input: '{"\\ud800":1}' },
];

/** Texts that two parsers read differently. */
const AMBIGUITIES: readonly HostileInput[] = [
  { name: 'a name twice', input: '{"amount":"1","amount":"2"}' },
  { name: 'a name twice, the same', input: '{"amount":"1","amount":"1"}' },
  { name: 'a name twice, deep', input: '{"a":[{"b":{"c":1,"d":2,"c":3}}]}' },
  { name: 'a name twice, once escaped', input: '{"amount":1,"\\u0061mount":2}' },
  { name: 'a name twice, once with an escaped slash', input: '{"a/b":1,"a\\/b":2}' },
  { name: 'an empty name twice', input: '{"":1,"":2}' },
  { name: 'a comment', input: '{"a":1/*,"b":2*/}' },
  { name: 'a comma at the end', input: '{"a":1,}' },
  { name: 'single quotes', input: "{'a':1}" },
  { name: 'a name without quotes', input: '{a:1}' },
  { name: 'NaN', input: '{"a":NaN}' },
  { name: 'Infinity', input: '{"a":-Infinity}' },
  { name: 'a hexadecimal number', input: '{"a":0x10}' },
  { name: 'an octal number', input: '{"a":010}' },
  { name: 'a number with plus', input: '{"a":+1}' },
  { name: 'a number without digits before the point', input: '{"a":.5}' },
  { name: 'a line break in a string', input: '{"a":"\n"}' },
  { name: 'two documents', input: '{"a":1}{"b":2}' },
];

/** Numbers that a double does not hold. */
const NUMBERS: readonly HostileInput[] = [
  '12345678901234567890',
  '9007199254740993',
  '-9007199254740993',
  '1e400',
  '-1e400',
].map((number) => ({ name: number, input: `{"a":[${number}]}` }));

/** Members that reach a prototype in a careless copy. */
const PROTOTYPES: readonly HostileInput[] = [
  '{"__proto__":{"polluted":1}}',
  '{"a":{"__proto__":null}}',
  '{"a":[{"b":{"constructor":{"prototype":{"polluted":1}}}}]}',
  '{"prototype":1}',
  '{"\\u005f_proto__":{"polluted":1}}',
  '{"__proto__":1,"a":2}',
].map((input) => ({ name: input, input }));

describe('bodies', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  /** Sends an input; resolves to whether it was refused before any request to the backend. */
  async function bring(entrance: Entrance, input: string | Buffer, lines?: readonly string[]): Promise<WireAnswer> {
    target.backend.forget();
    const answer = await answerTo(target.url, entrance.request(entrance.around(input), lines));
    assert.ok(formOf(answer), answer.body.toString());
    assert.equal(target.backend.requests.length, isRefusal(answer) ? 0 : 1);
    return answer;
  }

  const allRefused = async (entrance: Entrance, inputs: readonly HostileInput[]): Promise<void> => {
    for (const { name, input } of inputs) assert.ok(isRefusal(await bring(entrance, input)), name);
  };

  proven(
    ['B1', 'I11'],
    'spec/server/http/faults.spec.ts',
    '413 goes out with the first byte too many of an endless upload, which is not drained',
  );

  const negotiation = 'spec/routes/negotiation.spec.ts';
  proven('B1', negotiation, 'may have ${MAX_BODY_BYTES} bytes, and is 413 with one more');
  proven('B3', negotiation, 'is 415 as ${what}');
  proven('B3', negotiation, 'is read as ${type}');

  for (const entrance of ENTRANCES) {
    const { name, levels } = entrance;

    attack('B2', `${name}: compressed bodies are refused, and never unpacked`, async () => {
      const resident = target.residentBytes();
      for (const [coding, bytes] of bombs()) {
        const lines = ['Content-Type: application/json', `Content-Encoding: ${coding}`];
        const answer = await answerTo(target.url, entrance.request(bytes, lines));
        assert.deepEqual([answer.status, formOf(answer) !== undefined], [415, true], coding);
      }
      assert.ok(target.residentBytes() - resident < MAX_GROWTH_BYTES);
      const identity = ['Content-Type: application/json', 'Content-Encoding: identity'];
      assert.ok(!isRefusal(await bring(entrance, '{}', identity)));
    });

    attack('B4', `${name}: ${ENCODINGS.length} inputs that are no UTF-8 text are refused`, () =>
      allRefused(entrance, ENCODINGS),
    );
    attack('B6', `${name}: ${AMBIGUITIES.length} inputs that two parsers read differently are refused`, () =>
      allRefused(entrance, AMBIGUITIES),
    );
    attack('B8', `${name}: ${PROTOTYPES.length} inputs that name a prototype are refused`, () =>
      allRefused(entrance, PROTOTYPES),
    );
    attack('B9', `${name}: ${NUMBERS.length} numbers that a double does not hold are refused`, () =>
      allRefused(entrance, NUMBERS),
    );

    attack('B7', `${name}: ${MAX_JSON_DEPTH} levels are read, one more and 131,072 are refused`, async () => {
      for (const all of [MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH])
        assert.ok(!isRefusal(await bring(entrance, deep(all - levels))), `${all} levels`);
      assert.ok(isRefusal(await bring(entrance, deep(MAX_JSON_DEPTH + 1 - levels))));
      const most = Math.floor((MAX_BODY_BYTES - entrance.around('').length) / 2);
      for (const input of [
        '['.repeat(most),
        '['.repeat(most) + ']'.repeat(most),
        `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`,
      ])
        assert.ok(isRefusal(await bring(entrance, input)));
    });

    attack('B5', `${name}: the text of an unreadable body is never echoed`, async () => {
      const secret = 'planted-secret-6e1f';
      const broken = [
        `{"a":"${secret}`,
        `{"${secret}":}`,
        secret,
        `{"a":1,"a":"${secret}"}`,
        `["${secret}"]`,
        `{"__proto__":"${secret}"}`,
      ];
      for (const input of broken) {
        const answer = await bring(entrance, input);
        assert.ok(isRefusal(answer) && !answer.body.includes(secret), input);
        assert.ok(![...answer.headers.values()].flat().some((value) => value.includes(secret)));
      }
      const last = `last-${name}`;
      await bring(entrance, '{}', ['Content-Type: application/json', `X-Request-Id: ${last}`]);
      await target.gateway.logged(({ requestId }) => requestId === last);
      assert.ok(!JSON.stringify(target.gateway.log).includes(secret));
    });
  }

  attack(
    ['B9', 'B10', 'I12'],
    'over HTTP the backend gets the bytes that were sent, not a rewritten JSON text',
    async () => {
      const [http] = ENTRANCES;
      assert.ok(http !== undefined);
      for (const input of [
        '{"n":1.0,"m":1e2,"z":-0}',
        ' { "b" : 1 ,\n\t"a" : "\\u00e9\\/" } ',
        '{"a":"\u2028","b":0.1e-1}',
        '{"10":1,"9":2}',
      ]) {
        await bring(http, input);
        assert.equal(target.backend.requests[0]?.body.toString(), input);
      }
    },
  );

  attack(['B9', 'B10'], 'over MCP and A2A the backend gets the same values, as one JSON document', async () => {
    for (const entrance of ENTRANCES.slice(1)) {
      const input =
        '{"n":1.0,"deep":{"b":[1,"\\u00e9",null,true]},"boundary":"--a\\r\\nContent-Disposition: form-data"}';
      await bring(entrance, input);
      const [request] = target.backend.requests;
      assert.deepEqual(JSON.parse(request?.body.toString() ?? ''), JSON.parse(input));
      assert.equal(request?.headers['content-type'], 'application/json');
    }
  });

  attack('B8', 'names of prototypes are unknown resources, tools and parameters', async () => {
    for (const id of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const answer = await fetch(`${target.url}/api/resources/${id}/invoke`, { method: 'POST' });
      assert.equal(answer.status, 404, id);
      const events = await fetch(`${target.url}/api/events?${id}=1&__proto__[limit]=2&constructor.prototype.limit=3`, {
        headers: { authorization: `Bearer ${target.adminToken}` },
      });
      assert.equal(events.status, 200);
    }
    await target.stillSells();
  });
});
