import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { SMALL_BYTES, type WaitingCall } from '../../../src/server/load-shedding/call-queue.ts';
import { createLoadShedder, type Fate } from '../../../src/server/load-shedding/load-shedder.ts';

interface Asked {
  readonly fate: Fate;
  /** The call that waits; undefined where none was asked to. */
  readonly waiting: WaitingCall | undefined;
  /** Whether the process was asked if it has room. */
  readonly decided: boolean;
  readonly begun: number;
}

/** Asks a load shedder that admits nothing, unless it is told to. */
function ask(
  method: string,
  url: string,
  { admits = false, headers = {}, full = false }: Readonly<Record<string, unknown>> = {},
): Asked {
  let waiting: WaitingCall | undefined;
  let decided = false;
  let begun = 0;
  const loadShedder = createLoadShedder({
    queue: {
      admits() {
        decided = true;
        return admits === true;
      },
      enter(call) {
        waiting = call;
        return full !== true;
      },
    },
    turns: { refusing: (refuse) => refuse() },
    mounts: new Map([
      ['/mcp', 'mcp'],
      ['/acp/checkout_sessions', 'acp'],
    ]),
    draining: () => false,
    reason: () => 'in_flight',
    onShed: () => assert.fail('nothing is shed here'),
    carriesProof: (req) => 'proof' in req.headers,
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
  for (const [title, method, url, decided] of [
    ['lets every GET pass', 'GET', '/ready', false],
    ['decides about a call', 'POST', '/api/resources/a/invoke', true],
    ['decides about a message', 'POST', '/mcp?x=1', true],
    ['leaves a checkout to its adapter, which first checks the caller', 'POST', '/acp/checkout_sessions?x=1', false],
    ["decides about a GET at the backend's own address", 'GET', '/reports/x', true],
    ['leaves what passes to the admission of the passthrough', 'POST', '/blog', false],
  ] as const)
    it(title, () => {
      const asked = ask(method, url, { admits: true });
      assert.deepEqual([asked.fate, asked.decided], ['goes_on', decided]);
    });

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

  it('counts the head and the declared body of what waits', () => {
    const { waiting } = ask('POST', '/a', { headers: { 'content-length': '1000' } });
    assert.equal(waiting?.bytes, 1_000 + '/a'.length + 'content-length'.length + '1000'.length);
  });

  for (const [title, options] of [
    ['a body of unknown length', { headers: { 'transfer-encoding': 'chunked' } }],
  ] as const)
    it(`takes ${title} as large`, () => assert.ok((ask('POST', '/a', options).waiting?.bytes ?? 0) > SMALL_BYTES));
});
