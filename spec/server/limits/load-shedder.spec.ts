import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import {
  type Fate,
  openLoadShedder,
  ProofStanding,
  REFUSED_IN_SUCCESSION,
} from '../../../src/server/limits/load-shedder.ts';
import {
  type CallKind,
  CallLimit,
  Slots,
  SMALL_BYTES,
  type WaitingCall,
} from '../../../src/server/limits/load-shedding.ts';
import { serveHttp } from '../../support/http-server.ts';
import { openBareListener } from '../http/bare-listener.ts';
import { closeOf, dial, invoke, received } from '../http/raw.ts';

interface Asked {
  readonly fate: Fate;
  /** The call that waits; undefined where none was asked to. */
  readonly waiting: WaitingCall | undefined;
  /** For what the process was asked if it has room. */
  readonly decided: CallKind | undefined;
  readonly begun: number;
}

const PARTS = {
  mounts: new Map([
    ['/mcp', 'mcp'],
    ['/acp/checkout_sessions', 'acp'],
  ]),
  maxInFlight: 0,
  lifecycle: { draining: () => false, begin: () => () => undefined },
  carriesProof: (req) => 'proof' in req.headers,
  proofs: { networkOf: () => 'n', of: () => 'usual' },
  onShed: () => undefined,
  onLost: () => undefined,
} satisfies Parameters<typeof openLoadShedder>[0];

/** Admits nothing and lets nothing wait, unless it is told to; it has no slot. */
class ScriptedLimit extends CallLimit {
  admitting = false;
  full = true;
  waitingCall: WaitingCall | undefined;
  decided: CallKind | undefined;

  constructor() {
    super({ maxInFlight: 0, work: PARTS.lifecycle.begin });
  }

  override admits(kind: CallKind): boolean {
    this.decided = kind;
    return this.admitting;
  }

  override wait(call: WaitingCall): boolean {
    this.waitingCall = call;
    return !this.full;
  }
}

/** Asks a load shedder that admits nothing, unless it is told to. */
function ask(
  method: string,
  url: string,
  { admits = false, headers = {}, full = false }: Readonly<Record<string, unknown>> = {},
): Asked {
  let begun = 0;
  const limit = new ScriptedLimit();
  limit.admitting = admits === true;
  limit.full = full === true;
  const routeOf = ({ url: target = '' }: IncomingMessage) => ({
    kind: { '/reports/x': 'in_place', '/blog': 'pass' }[target] ?? 'own',
  });
  const { loadShedder, shed, close } = openLoadShedder({ ...PARTS, routeOf }, limit);
  const rawHeaders = Object.entries(headers as Record<string, string>).flat();
  const socket = { destroyed: false };
  const req = { method, url, headers, rawHeaders, socket } as unknown as IncomingMessage;
  const res = { socket } as unknown as ServerResponse;
  const fate = loadShedder(req, res, () => {
    begun += 1;
  });
  if (full !== true) limit.waitingCall?.begin();
  close();
  assert.deepEqual(shed(), { overload: 0, in_flight: 0 });
  return { fate, waiting: limit.waitingCall, decided: limit.decided, begun };
}

describe('the load shedder', () => {
  for (const [title, method, url, kind] of [
    ['a probe', 'GET', '/ready', 'probe'],
    ['a document', 'GET', '/openapi.json', 'other'],
    ['what will be a 405', 'DELETE', '/api/resources/a/invoke', 'other'],
    ['a call', 'POST', '/api/resources/a/invoke', 'plain'],
    ['a message', 'POST', '/mcp?x=1', 'message'],
    ['a checkout', 'POST', '/acp/checkout_sessions?x=1', 'other'],
    ['a GET of an invoke path', 'GET', '/api/resources/r/invoke', 'plain'],
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
      const { loadShedder, close } = openLoadShedder(PARTS, new ScriptedLimit());
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
      close();
      const told = ['content-type', 'x-content-type-options', 'retry-after'].map((name) => headers.get(name));
      assert.deepEqual([status, ...told], [503, type, 'nosniff', '1']);
    });
});

describe('the connection of a call that is refused', () => {
  for (const [title, fields, sent, rest, kept] of [
    ['serves the next one, past the rest of a declared body', 'Content-Length: 4', '{}', '  ', true],
    ['ends where the length of the body is not known', 'Transfer-Encoding: chunked', '2\r\n{}\r\n', '0\r\n\r\n', false],
  ] as const)
    it(title, async () => {
      const limit = new ScriptedLimit();
      const { loadShedder, close } = openLoadShedder(PARTS, limit);
      const listener = await openBareListener([
        (req, res, next) => void (loadShedder(req, res, () => undefined) === 'goes_on' && next()),
      ]);
      try {
        const socket = await dial(listener.url);
        const text = received(socket);
        socket.write(invoke('a', [fields]) + sent);
        while (!text().includes('GATEWAY_BUSY')) await once(socket, 'data');
        limit.admitting = true;
        socket.write(`${rest}${invoke('b', ['Connection: close', 'Content-Length: 2'])}{}`);
        await closeOf(socket);
        assert.match(text(), /^HTTP\/1\.1 503 /);
        assert.equal(/^connection: close/im.test(text().split('GATEWAY_BUSY')[0] ?? ''), !kept);
        assert.deepEqual(listener.served, kept ? ['POST /api/resources/b/invoke'] : []);
      } finally {
        listener.close();
        close();
      }
    });
});

describe('an open load shedder, for an adapter that answers itself', () => {
  const parts = { ...PARTS, maxInFlight: 512 };

  it('refuses beyond the cap of that adapter, and beyond that of all calls', () => {
    const opened = openLoadShedder({ ...parts, maxInFlight: 1 });
    try {
      const cap = new Slots(1);
      const shedding = opened.sheddingFor(cap);
      assert.equal(shedding(), undefined);
      const leaveAdapter = cap.take()();
      assert.equal(shedding(), 'in_flight');
      leaveAdapter();
      const leave = opened.slots.take()();
      assert.equal(shedding(), 'in_flight');
      leave();
      assert.equal(shedding(), undefined);
      assert.deepEqual(opened.shed(), { overload: 0, in_flight: 2 }, 'only refusals are counted');
    } finally {
      opened.close();
    }
  });

  it('tells how many calls it refused at most once a second, and the rest at its end', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const told: object[] = [];
    const opened = openLoadShedder({ ...parts, busy: () => 0, onShed: (shed) => void told.push(shed) });
    const shedding = opened.sheddingFor(new Slots(0));
    const wait = (ms: number): void => {
      now += ms;
      t.mock.timers.tick(ms);
    };
    for (const ms of [900, 100, 2_000]) {
      if (ms < 1_000) for (let call = 0; call < 3; call += 1) shedding();
      wait(ms);
      assert.deepEqual(told, ms === 900 ? [] : [{ overload: 0, in_flight: 6 }]);
    }
    shedding();
    opened.close();
    assert.deepEqual(told.slice(1), [{ overload: 0, in_flight: 1 }]);
  });

  it('frees and tells the slots of both that outlive the longest call', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const now = t.mock.method(performance, 'now');
    const told: number[] = [];
    const opened = openLoadShedder({ ...parts, onLost: (slots) => void told.push(slots) });
    try {
      const cap = new Slots(1);
      opened.sheddingFor(cap);
      for (const slots of [opened.slots, cap]) slots.take()();
      for (const [minutes, lost] of [
        [3, 0],
        [5, 2],
      ] as const) {
        const at = minutes * 60_000 + performance.now();
        now.mock.mockImplementation(() => at);
        t.mock.timers.tick(1_000);
        assert.equal(opened.lost(), lost);
      }
      assert.deepEqual([told, opened.slots.inFlight(), cap.free()], [[2], 0, true]);
    } finally {
      opened.close();
    }
  });
});

/** A request on a connection of its own. */
const from = (network: string): IncomingMessage => ({ socket: { network } }) as unknown as IncomingMessage;
const standings = (): ProofStanding =>
  new ProofStanding(({ socket }) => (socket as unknown as { readonly network: string }).network);

describe('the standing of a request', () => {
  it('is usual at first', () => assert.equal(standings().of(from('a'), 'a'), 'usual'));

  it('is that of a buyer for the next requests of a connection that bought something, and not for ever', () => {
    const proofs = standings();
    const req = from('a');
    proofs.note(req, 'bought');
    const next = Array.from({ length: 12 }, () => proofs.of(req, 'a'));
    assert.deepEqual(next, [...Array(8).fill('paid'), ...Array(4).fill('usual')]);
    assert.equal(proofs.of(from('a'), 'a'), 'usual', 'another connection of its network has bought nothing');
  });

  it('is failed after a proof that was refused', () => {
    const proofs = standings();
    const refused = from('a');
    proofs.note(refused, 'refused');
    assert.deepEqual(
      [refused, from('a')].map((req) => proofs.of(req, 'a')),
      ['failed', 'usual'],
    );
  });

  it('is failed on a new connection of a network whose proofs were refused in succession, until a purchase', () => {
    const proofs = standings();
    const refuse = (times: number): void => {
      for (let time = 0; time < times; time += 1) proofs.note(from('a'), 'refused');
    };
    refuse(REFUSED_IN_SUCCESSION - 1);
    assert.equal(proofs.of(from('a'), 'a'), 'usual');
    refuse(1);
    assert.deepEqual([proofs.of(from('a'), 'a'), proofs.of(from('b'), 'b')], ['failed', 'usual']);
    proofs.note(from('a'), 'bought');
    assert.equal(proofs.of(from('a'), 'a'), 'usual');
  });
});
