import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { readRequest } from '../../../src/adapters/a2a/request.ts';
import { LEGAL, RUNGS } from './rungs.ts';

const HEADERS = {
  version: { kind: 'single', value: '1.0' },
  proof: { kind: 'none' },
  mandate: { kind: 'none' },
} as const;
const DIALECT = { errorProfile: 'gateway', continuation: true } as const;
const KINDS: readonly string[] = ['message', 'answered', 'refused'];

/** What is read of a request, whatever it is; never an exception. */
function read(request: unknown) {
  const reading = readRequest(Buffer.from(JSON.stringify(request)), HEADERS, DIALECT);
  assert.ok(KINDS.includes(reading.kind));
  return reading;
}

/** Every place of a document, as a path of names. */
function paths(value: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  if (value === null || typeof value !== 'object') return [at];
  return [at, ...Object.entries(value).flatMap(([name, member]) => paths(member, [...at, name]))];
}

function replaced(value: unknown, [name, ...rest]: readonly string[], by: unknown): unknown {
  if (name === undefined) return by;
  const members = value as Record<string, unknown>;
  if (Array.isArray(value))
    return value.map((item: unknown, at) => (`${at}` === name ? replaced(item, rest, by) : item));
  return { ...members, [name]: replaced(members[name], rest, by) };
}

describe('the reading of a request', () => {
  const requests = [...RUNGS.map(({ request }) => request), ...LEGAL.map(([, request]) => request)];

  it('has an answer for whatever stands in whatever place of a message', () => {
    fc.assert(
      fc.property(fc.constantFrom(...requests), fc.nat(), fc.jsonValue({ maxDepth: 3 }), (request, pick, value) => {
        const places = paths({ id: 1, ...request });
        const place = places[pick % places.length] ?? [];
        read(replaced({ id: 1, ...request }, place, value));
      }),
      { numRuns: 2_000 },
    );
  });

  it('echoes every id that a request may have, with its type', () => {
    const ids = fc.oneof(fc.integer(), fc.string({ unit: 'binary' }), fc.constantFrom(0, 1.5, ''));
    fc.assert(
      fc.property(fc.constantFrom(...requests), ids, (request, id) => {
        assert.equal(read({ ...request, id }).id, id);
      }),
    );
  });

  it('says null for any other id', () => {
    const ids = fc.oneof(
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.jsonValue()),
      fc.dictionary(fc.string(), fc.nat()),
    );
    fc.assert(
      fc.property(fc.constantFrom(...requests), ids, (request, id) => {
        assert.equal(read({ ...request, id }).id, null);
      }),
    );
  });

  it('a body that is no message at all is refused, never read as one', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.equal(readRequest(bytes, HEADERS, DIALECT).kind, 'refused');
      }),
    );
  });
});
