import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVENT_TYPES } from '../../../src/events/event.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { event, move, receipt, recordIn, terms } from '../../payments/ledger/samples.ts';
import { openBed, type StreamBed, TOKEN } from './stream-bed.ts';

const ENTRIES = 520;
const REPEATED_TYPE = '?type=backend.called&type=backend.failed';
const LIMITS = { eventsMaxLength: 1_000, receiptsMaxLength: 1_000 };

let bed: StreamBed;
before(async () => {
  const store = openSqliteStore({ path: ':memory:', limits: LIMITS });
  bed = await openBed(store);
  const names = Array.from({ length: ENTRIES }, (_, i) => i);
  await store.feed.append(names.map((i) => event(i % 2 ? 'backend.called' : 'resource.requested', `n-${i}`)));
  await store.receipts.write(
    names.map((i) => {
      const id = `receipt_00000000-0000-7000-8000-${String(i).padStart(12, '0')}`;
      return receipt(id, `n-${i}`, { delivered: i % 2 === 0, resourceId: i < 5 ? 'rare' : 'market_report' });
    }),
  );
});
after(async () => {
  await bed.close();
  await bed.store.close();
});

interface Listing {
  readonly status: number;
  readonly names: readonly string[];
  readonly nextCursor: string | undefined;
  readonly field: string | undefined;
  readonly response: Response;
}

async function list(path: string, query: string, method = 'GET'): Promise<Listing> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const response = await fetch(`${bed.url}${path}${query}`, { method, headers });
  const text = await response.text();
  const body = text === '' ? {} : JSON.parse(text);
  const items: readonly { readonly requestId: string }[] = body.events ?? body.receipts ?? [];
  return {
    status: response.status,
    names: items.map(({ requestId }) => requestId),
    nextCursor: body.nextCursor,
    field: body.details?.field,
    response,
  };
}

const LISTS = [
  ['/api/events', 'events'],
  ['/api/receipts', 'receipts'],
] as const;

for (const [path, name] of LISTS)
  describe(`GET ${path}`, () => {
    const sizes: readonly (readonly [query: string, size: number])[] = [
      ['', 50],
      ['?limit=1', 1],
      ['?limit=499', 499],
      ['?limit=500', 500],
      ['?limit=501', 500],
      ['?limit=99999999999999999999999999', 500],
      ['?limit=007', 7],
      ['?unknown=1&limit=3&unknown=2', 3],
    ];
    for (const [query, size] of sizes)
      it(`${query || 'without a limit'}: ${size}, newest first, and where to go on`, async () => {
        const { status, names, nextCursor, response } = await list(path, query);
        assert.deepEqual([status, names.length], [200, size]);
        assert.deepEqual(
          names,
          names.map((_, i) => `n-${ENTRIES - 1 - i}`),
        );
        assert.ok(nextCursor !== undefined);
        assert.equal(response.headers.get('cache-control'), 'no-store');
      });

    for (const limit of ['0', '-1', '1.5', '1e2', 'many', '', '+5', '%205', '0x10'])
      it(`limit=${limit} is refused`, async () => {
        const { status, field } = await list(path, `?limit=${limit}`);
        assert.deepEqual([status, field], [400, 'limit']);
      });

    const refused: readonly (readonly [query: string, field: string])[] = [
      ['?cursor=1-0', 'cursor'],
      ['?cursor=', 'cursor'],
      ['?cursor=evt_(1-0', 'cursor'],
      ['?cursor=receipt_x', 'cursor'],
      ['?requestId=a%20b', 'requestId'],
      [`?requestId=${'a'.repeat(129)}`, 'requestId'],
      ['?resourceId=%0d%0a', 'resourceId'],
      ['?limit=5&limit=5', 'limit'],
      ['?cursor=&cursor=', 'cursor'],
      ['?requestId=n-1&requestId=n-2', 'requestId'],
      ['?resourceId=rare&limit=5&resourceId=rare', 'resourceId'],
    ];
    for (const [query, wanted] of refused)
      it(`${query.slice(0, 30)} is refused`, async () => {
        const { status, field } = await list(path, query);
        assert.deepEqual([status, field], [400, wanted]);
      });

    it('the cursor leads through all of it, once', async () => {
      const seen: string[] = [];
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page: Listing = await list(path, `?limit=100${cursor && `&cursor=${cursor}`}`);
        seen.push(...page.names);
        cursor = page.nextCursor;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: ENTRIES }, (_, i) => `n-${ENTRIES - 1 - i}`),
      );
    });

    it('finds a request, and nothing for one that is not there', async () => {
      assert.deepEqual((await list(path, '?requestId=n-7')).names, ['n-7']);
      const { response: _response, ...none } = await list(path, '?requestId=unknown');
      assert.deepEqual(none, { status: 200, names: [], nextCursor: undefined, field: undefined });
    });

    it(`has ${name} and nothing else beside where to go on`, async () => {
      const answer = await fetch(`${bed.url}${path}?limit=2`, { headers: { authorization: `Bearer ${TOKEN}` } });
      assert.deepEqual(Object.keys((await answer.json()) as object), [name, 'nextCursor']);
    });
  });

describe('what only one of the lists knows', () => {
  it('events by type', async () => {
    const { names } = await list('/api/events', '?type=backend.called&limit=3');
    assert.deepEqual(names, ['n-519', 'n-517', 'n-515']);
    const known = await list('/api/events', '?type=resource.discovered');
    assert.deepEqual([known.status, known.names], [200, []]);
  });

  for (const query of ['?type=bogus', '?type=backend', '?type=', '?type=Backend.Called', REPEATED_TYPE])
    it(`events ${query}: no type of the vocabulary, and the refusal names them all`, async () => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const answer = await fetch(`${bed.url}/api/events${query}`, { headers });
      const { code, message, details } = (await answer.json()) as {
        readonly code: string;
        readonly message: string;
        readonly details: { readonly field: string };
      };
      assert.deepEqual([answer.status, code, details.field], [400, 'INPUT_INVALID', 'type']);
      if (query !== REPEATED_TYPE) for (const type of EVENT_TYPES) assert.ok(message.includes(type), message);
    });

  it('a parameter of the other list is unknown, and ignored', async () => {
    assert.equal((await list('/api/events', '?delivered=maybe&limit=3')).names.length, 3);
    assert.equal((await list('/api/receipts', '?type=bogus&limit=3')).names.length, 3);
  });

  it('receipts by delivery and resource', async () => {
    const { names } = await list('/api/receipts', '?delivered=false&limit=2');
    assert.deepEqual(names, ['n-519', 'n-517']);
    assert.deepEqual((await list('/api/receipts', '?delivered=true&resourceId=rare')).names, ['n-4', 'n-2', 'n-0']);
    for (const word of ['yes', '1', 'TRUE', '', 'false&delivered=true', 'true&delivered=true'])
      assert.equal((await list('/api/receipts', `?delivered=${word}`)).field, 'delivered');
  });
});

describe('GET /api/receipts/unpaid', () => {
  it('has refused payments whose backend had answered, the latest first, at most as many as asked for', async () => {
    const { ledger } = bed.store;
    const worked = async (name: string): Promise<void> => {
      const reserved = recordIn(await ledger.reserve({ terms: terms(name), owner: name, leaseMs: 60_000 }));
      const answered = await ledger.advance(move(reserved, 'worked'));
      assert.ok(answered.kind === 'done');
      assert.equal((await ledger.advance(move(answered.record, 'refused'))).kind, 'done');
    };
    for (const name of ['one', 'two', 'three']) await worked(name);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const answer = await fetch(`${bed.url}/api/receipts/unpaid?limit=2`, { headers });
    const { unpaid } = (await answer.json()) as { readonly unpaid: readonly { readonly payId: string }[] };
    assert.deepEqual([answer.status, unpaid.length], [200, 2]);
    assert.deepEqual((await list('/api/receipts/unpaid', '?limit=0')).field, 'limit');
  });
});
