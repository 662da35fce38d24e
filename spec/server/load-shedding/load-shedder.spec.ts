import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { type CallKind, SMALL_BYTES, type WaitingCall } from '../../../src/server/load-shedding/call-queue.ts';
import { createLoadShedder, type Fate } from '../../../src/server/load-shedding/load-shedder.ts';
import { serveHttp } from '../../support/http-server.ts';

interface Asked {
  readonly fate: Fate;
  /** The call that waits; undefined where none was asked to. */
  readonly waiting: WaitingCall | undefined;
  /** For what the process was asked if it has room. */
  readonly decided: CallKind | undefined;
  readonly begun: number;
}

const PARTS = {
  turns: { refusing: (refuse: () => void) => refuse() },
  mounts: new Map([
    ['/mcp', 'mcp'],
    ['/acp/checkout_sessions', 'acp'],
  ]),
  draining: () => false,
  reason: () => 'in_flight',
  carriesProof: (req) => 'proof' in req.headers,
  proofs: { networkOf: () => 'n', of: () => 'usual' },
} satisfies Partial<Parameters<typeof createLoadShedder>[0]>;

/** Asks a load shedder that admits nothing, unless it is told to. */
function ask(
  method: string,
  url: string,
  { admits = false, headers = {}, full = false }: Readonly<Record<string, unknown>> = {},
): Asked {
  let waiting: WaitingCall | undefined;
  let decided: CallKind | undefined;
  let begun = 0;
  const loadShedder = createLoadShedder({
    ...PARTS,
    queue: {
      admits(kind) {
        decided = kind;
        return admits === true;
      },
      enter(call) {
        waiting = call;
        return full !== true;
      },
    },
    onShed: () => assert.fail('nothing is shed here'),
    routeOf: ({ url: target }) => ({ kind: { '/reports/x': 'in_place', '/blog': 'pass' }[target ?? ''] ?? 'own' }),
  });
  const rawHeaders = Object.entries(headers as Record<string, string>).flat();
  const socket = { destroyed: false };
  const req = { method, url, headers, rawHeaders, socket } as unknown as IncomingMessage;
  const res = { socket } as unknown as ServerResponse;
  const fate = loadShedder(req, res, () => {
    begun += 1;
  });
  if (full !== true) waiting?.begin();
  return { fate, waiting, decided, begun };
}

describe('the load shedder', () => {
  for (const [title, method, url, kind] of [
    ['a probe', 'GET', '/ready', 'probe'],
    ['a document', 'GET', '/openapi.json', 'other'],
    ['what will be a 405', 'DELETE', '/api/resources/a/invoke', 'other'],
    ['a call', 'POST', '/api/resources/a/invoke', 'plain'],
    ['a message', 'POST', '/mcp?x=1', 'message'],
    ['a checkout', 'POST', '/acp/checkout_sessions?x=1', 'other'],
    ["a GET at the backend's own address", 'GET', '/reports/x', 'plain'],
    ['what passes', 'POST', '/blog', 'other'],
  ] as const)
    it(`lets ${title} take a turn, as a kind of its own`, () => {
      assert.deepEqual(ask(method, url, { admits: true }).decided, kind);
      const { fate, waiting, begun } = ask(method, url);
      assert.deepEqual([fate, waiting?.kind, begun], ['waits', kind, 1]);
    });

  for (const [title, url] of [
    ['a probe', '/health'],
    ['a checkout, which its adapter refuses in its own format', '/acp/checkout_sessions'],
  ] as const)
    it(`never refuses ${title}`, () => assert.equal(ask('GET', url, { full: true }).fate, 'goes_on'));

  it('lets a call wait that is not admitted, and go on later', () => {
    const { fate, begun } = ask('POST', '/api/resources/a/invoke');
    assert.deepEqual([fate, begun], ['waits', 1]);
  });

  it('lets a message go on that may not wait, without a free slot: its protocol refuses it', () => {
    const { fate, begun } = ask('POST', '/mcp', { full: true });
    assert.deepEqual([fate, begun], ['goes_on', 0]);
  });

  for (const [title, url, headers, kind] of [
    ['with a proof', '/api/resources/a/invoke', { proof: 'x' }, 'proof'],
    ['with a proof at the address of the backend', '/reports/x', { proof: 'x' }, 'proof'],
    ['with a message, whose body may hold a proof', '/mcp', {}, 'message'],
    ['with neither', '/api/resources/a/invoke', {}, 'plain'],
  ] as const)
    it(`knows a call ${title}`, () => assert.equal(ask('POST', url, { headers }).waiting?.kind, kind));

  for (const [title, length, large] of [
    ['a small declared body', 1_000, false],
    ['a large declared body', SMALL_BYTES, true],
  ] as const)
    it(`takes ${title} as what it is`, () =>
      assert.equal(ask('POST', '/a', { headers: { 'content-length': String(length) } }).waiting?.large, large));

  for (const [title, options] of [
    ['a body of unknown length', { headers: { 'transfer-encoding': 'chunked' } }],
  ] as const)
    it(`takes ${title} as large`, () => assert.equal(ask('POST', '/a', options).waiting?.large, true));

  for (const [accept, type] of [
    ['*/*', 'application/json; charset=utf-8'],
    ['text/html', 'text/html; charset=utf-8'],
  ] as const)
    it(`answers 503 as ${type}, which no browser takes for something else`, async () => {
      const queue = { admits: () => false, enter: () => false };
      const loadShedder = createLoadShedder({ ...PARTS, queue, onShed: () => undefined });
      const server = await serveHttp(({ request, response }) => {
        assert.equal(
          loadShedder(request, response, () => assert.fail('begun')),
          'refused',
        );
      });
      const { status, headers } = await fetch(`${server.url}/api/resources/a/invoke`, {
        method: 'POST',
        headers: { accept },
      });
      await server.stop();
      const told = ['content-type', 'x-content-type-options', 'retry-after'].map((name) => headers.get(name));
      assert.deepEqual([status, ...told], [503, type, 'nosniff', '1']);
    });
});
