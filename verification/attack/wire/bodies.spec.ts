import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { MAX_JSON_DEPTH } from '../../../src/json/json.ts';
import { MAX_BODY_BYTES } from '../../../src/server/http/request.ts';
import { attack } from '../catalogue.ts';
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

const inString = (...inner: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from('{"a":"'), Buffer.from(inner), Buffer.from('"}')]);

/** Inputs that no channel may accept, of each kind that the strict parser knows; text is UTF-8. */
const UNREADABLE: readonly (string | Buffer)[] = [
  Buffer.from('{"a":1}', 'utf16le'),
  '+AHsAIgBhACIAOgAxAH0-',
  inString(0x80),
  inString(0xc0, 0x80),
  inString(0xed, 0xa0, 0x80),
  '{"\\ud800":1}',
  '{"amount":"1","amount":"1"}',
  '{"a/b":1,"a\\/b":2}',
  '{"a":1/*,"b":2*/}',
  '{"a":-Infinity}',
  '{"a":0x10}',
  '{"a":1}{"b":2}',
  '{"a":[-9007199254740993]}',
  '{"a":[1e400]}',
  '{"a":[{"b":{"constructor":{"prototype":{"polluted":1}}}}]}',
  '{"\\u005f_proto__":{"polluted":1}}',
];

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

    attack(
      ['B4', 'B6', 'B8', 'B9'],
      `${name}: ${UNREADABLE.length} inputs that parsers read differently are refused`,
      async () => {
        for (const input of UNREADABLE) assert.ok(isRefusal(await bring(entrance, input)), input.toString('latin1'));
      },
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
