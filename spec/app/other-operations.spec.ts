import assert from 'node:assert/strict';
import querystring from 'node:querystring';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { send, sharedRoutes } from '../routes/world.ts';
import { message, tool } from '../telemetry/callers.ts';

const DEAR = { type: 'fixed', amount: '5', currency: 'TUSD' };
const FREE = { type: 'free' };
const selling = (path: string, pricing: object, schema: object = {}) => ({
  name: path,
  expose: ['http', 'mcp', 'a2a', 'origin'],
  inputSchema: path.includes('{')
    ? { type: 'object', properties: { box: { type: 'string', ...schema } }, required: ['box'] }
    : { type: 'object' },
  backend: { method: 'GET', path },
  pricing,
});

/** The dear operation that a server runs which decodes paths and knows formats; else undefined. */
function dearOf(target: string): string | undefined {
  const { pathname, searchParams } = new URL(target, 'http://x');
  // Takes bytes that are no UTF-8 as well, as lenient servers do.
  const path = querystring
    .unescape(querystring.unescape(pathname))
    .toLowerCase()
    .replace(/[;?#].*$/, '')
    .replaceAll('\\', '/')
    .replace(/\.\w+$/, '')
    .replace(/\/$/, '');
  if (/^\/mail\/[^/]+\/full$/.test(path)) return 'full';
  return path === '/find' && searchParams.get('mode')?.toLowerCase() === 'deep' ? 'deep' : undefined;
}

describe('a call whose input names another operation', () => {
  const world = sharedRoutes({
    resources: {
      preview: selling('/mail/{box}', FREE),
      preview_any: { ...selling('/mail/{box}', FREE, { pattern: '.' }), expose: ['http', 'mcp', 'a2a'] },
      full: selling('/mail/{box}/full', DEAR),
      search: {
        ...selling('/find', FREE),
        inputSchema: { type: 'object', properties: { mode: { type: 'string' } } },
        expose: ['http', 'mcp', 'a2a'],
      },
      deep: { ...selling('/find?mode=deep', DEAR), expose: ['http', 'mcp', 'a2a'] },
    },
  });
  const post = async (path: string, body: string): Promise<string> =>
    (
      await send(world().agents, 'POST', path, {
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
        body,
      })
    ).text;
  const CHANNELS: Readonly<Record<string, (id: string, input: object) => Promise<string>>> = {
    http: (id, input) => post(`/api/resources/${id}/invoke`, JSON.stringify(input)),
    mcp: (id, input) => post('/mcp', tool(id, input)),
    a2a: (id, input) => post('/a2a', message(id, input)),
    origin: async (_id, input) => {
      const [value = ''] = Object.values(input);
      return (await send(world().agents, 'GET', `/mail/${encodeURIComponent(value)}`)).text;
    },
  };
  const asked = (): readonly string[] => world().backend.requests.map(({ url = '' }) => url);

  for (const [channel, call] of Object.entries(CHANNELS))
    it(`never runs it over ${channel}, whatever the value`, async () => {
      world().backend.forget();
      const piece = fc.constantFrom(
        'a',
        'full',
        'FULL',
        '/',
        '\\',
        '%2F',
        '%',
        ';',
        '?',
        '#',
        '.',
        '.json',
        ' ',
        'é',
        '／',
      );
      const ids = channel === 'origin' ? ['preview'] : ['preview', 'preview_any'];
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...ids),
          fc.array(piece, { minLength: 1, maxLength: 4 }),
          async (id, pieces) => {
            await call(id, { box: pieces.join('') });
          },
        ),
        { numRuns: 60 },
      );
      assert.ok(asked().length > 5);
      assert.deepEqual(
        asked()
          .map(dearOf)
          .filter((dear) => dear !== undefined),
        [],
      );
    });

  it('is refused in words before a price is named, where a fixed query alone tells the two apart as well', async () => {
    world().backend.forget();
    for (const [id, input, message] of [
      ['preview', { box: 'a/full' }, /must have none of/],
      ['preview_any', { box: 'a/full' }, /path of another operation/],
      ['preview_any', { box: 'a/full.json' }, /path of another operation/],
      ['search', { mode: 'deep' }, /path of another operation/],
      ['search', { mode: 'DEEP' }, /path of another operation/],
    ] as const) {
      const text = await CHANNELS['http']?.(id, input);
      assert.match(text ?? '', /"code":"INPUT_INVALID"/);
      assert.match(text ?? '', message);
    }
    assert.deepEqual(asked(), []);
  });

  it('passes with every other value', async () => {
    world().backend.forget();
    await CHANNELS['http']?.('preview', { box: 'full' });
    await CHANNELS['http']?.('preview_any', { box: 'a/b' });
    await CHANNELS['http']?.('search', { mode: 'quick' });
    assert.deepEqual(asked(), ['/mail/full', '/mail/a%2Fb', '/find?mode=quick']);
  });
});
