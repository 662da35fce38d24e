import assert from 'node:assert/strict';
import { describe } from 'node:test';
import fc from 'fast-check';
import { object, resourceOf } from '../../../spec/resources/resources.ts';
import { canonicalPosition, comparePositions, EVENT_ID } from '../../../src/events/page.ts';
import { canonicalJson, JsonError, parseStrictJson } from '../../../src/json/json.ts';
import { AmountError, formatAmount, parseAmount } from '../../../src/payments/pricing/amount.ts';
import { decodeProof } from '../../../src/payments/x402/wire/proof.ts';
import { MAX_TARGET_LENGTH } from '../../../src/resources/backend-request.ts';
import { attack, measured, times } from '../catalogue.ts';

/** Cases of each property. */
const CASES = times(2_000, 25_000);
const SEED = Number(process.env['ATTACK_SEED'] ?? 402);
const ORIGIN = 'http://127.0.0.1:3000';

const hostile = (characters: string): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: fc.constantFrom(...characters), maxLength: 60 }),
  );

/** Checks a property as often as the run requires, and reports the count. */
function property<T>(arbitrary: fc.Arbitrary<T>, holds: (given: T) => void): Parameters<typeof attack>[2] {
  return (t) => {
    fc.assert(fc.property(arbitrary, holds), { numRuns: CASES, seed: SEED });
    measured(t, 'property cases', CASES);
  };
}

describe(`parsers of untrusted bytes, seed ${SEED}`, () => {
  const proofText = fc.oneof(
    hostile('eyJ4NDAyVmVyc2lvbiI6Mn0=-_+/ \n'),
    fc.json({ maxDepth: 4 }).map((json) => Buffer.from(json).toString('base64')),
    fc
      .json({ maxDepth: 4 })
      .map((json) => Buffer.from(`{"x402Version":2,"accepted":${json},"payload":${json}}`).toString('base64')),
  );
  attack(
    'X1',
    'any proof is read or refused, and one spelling is one proof',
    property(proofText, (header) => {
      const read = decodeProof(header);
      if (read.kind === 'unreadable') return;
      const canonical = Buffer.from(header, 'base64').toString('base64');
      assert.equal(header.replace(/=+$/, ''), canonical.replace(/=+$/, ''));
    }),
  );

  const amountText = hostile('0123456789.eE+-_ ,x\n\u0663\uff10');
  attack(
    'X20',
    'any amount is exact or refused',
    property(fc.tuple(amountText, fc.integer({ min: 0, max: 18 })), ([text, decimals]) => {
      try {
        const units = parseAmount(text, decimals);
        assert.ok(units >= 0n && /^[0-9]+(\.[0-9]+)?$/.test(text));
        assert.equal(parseAmount(formatAmount(units, decimals), decimals), units);
      } catch (thrown) {
        if (!(thrown instanceof AmountError)) throw thrown;
      }
    }),
  );

  const texts = object(
    { a: { type: 'string' }, b: { type: 'string' }, c: { type: 'string' } },
    { required: ['a', 'b'] },
  );
  const resource = resourceOf(texts, { method: 'GET', path: '/base/{a}/orders/{b}.json' });
  const pathText = hostile('./\\%2eE5cC@:?#&;{}\t\n\0 aß');
  attack(
    'P1',
    'a request with any path parameter keeps its origin and depth, or is refused',
    property(fc.tuple(pathText, pathText, pathText), ([a, b, c]) => {
      const prepared = resource.prepare({ a, b, c }, undefined);
      if (!prepared.ok) return;
      const { path } = prepared.request;
      const url = new URL(ORIGIN + path);
      assert.equal(url.origin, ORIGIN);
      assert.equal(url.pathname.split('/').length, 5);
      assert.ok(path.length <= MAX_TARGET_LENGTH && /^[\x21-\x7e]+$/.test(path));
      assert.equal(url.searchParams.get('c'), c);
    }),
  );

  const jsonText = fc.oneof(
    fc.json({ maxDepth: 6, stringUnit: 'binary' }),
    hostile('{}[]",:\\u0019.eE+- atrufalsn\n'),
    fc
      .array(fc.constantFrom('a', '\\u0061', '__proto__', 'b', ''))
      .map((names) => `{${names.map((name) => `"${name}":1`).join()}}`),
  );
  attack(
    'B6',
    'any document is refused, or a first-wins and a last-wins reader read the same',
    property(jsonText, (text) => {
      try {
        const value = parseStrictJson(Buffer.from(text));
        assert.deepEqual(value, JSON.parse(text));
        assert.deepEqual(firstWins(text), value);
        assert.equal(canonicalJson(parseStrictJson(Buffer.from(canonicalJson(value)))), canonicalJson(value));
      } catch (thrown) {
        if (!(thrown instanceof JsonError)) throw thrown;
      }
    }),
  );

  const idText = fc.oneof(
    hostile('evt_0123456789-'),
    fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 16n - 1n }), fc.nat()).map(([ms, seq]) => `evt_${ms}-${seq}`),
  );
  attack(
    'O6',
    'any Last-Event-ID is a position with one spelling, or refused',
    property(fc.tuple(idText, idText), ([a, b]) => {
      if (!EVENT_ID.test(a) || !EVENT_ID.test(b)) return;
      assert.match(canonicalPosition(a), /^evt_(0|[1-9]\d*)-(0|[1-9]\d*)$/);
      assert.equal(Math.sign(comparePositions(a, b)), -Math.sign(comparePositions(b, a)) || 0);
      const [x, y] = [a, b].map((id) => id.slice(4).split('-').map(BigInt));
      const [[xMs = 0n, xSeq = 0n] = [], [yMs = 0n, ySeq = 0n] = []] = [x, y];
      const expected = xMs === yMs ? Number(xSeq > ySeq) - Number(xSeq < ySeq) : Number(xMs > yMs) - Number(xMs < yMs);
      assert.equal(Math.sign(comparePositions(a, b)), expected);
    }),
  );
});

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Reads well-formed JSON like parsers that keep the first of two members with one name;
 * `JSON.parse` keeps the last.
 */
function firstWins(text: string): unknown {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const value = (): unknown => {
    const token = tokens[at++];
    if (token === '[') return list();
    if (token === '{') return record();
    return JSON.parse(token ?? '');
  };
  const list = (): unknown => {
    const items: unknown[] = [];
    while (tokens[at] !== ']') {
      items.push(value());
      if (tokens[at] === ',') at += 1;
    }
    at += 1;
    return items;
  };
  const record = (): unknown => {
    const members = new Map<string, unknown>();
    while (tokens[at] !== '}') {
      const name: string = JSON.parse(tokens[at] ?? '');
      // Behind the name and its colon.
      at += 2;
      const member = value();
      if (!members.has(name)) members.set(name, member);
      if (tokens[at] === ',') at += 1;
    }
    at += 1;
    return Object.fromEntries(members);
  };
  return value();
}
