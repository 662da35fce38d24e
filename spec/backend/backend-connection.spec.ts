import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type WatchedBackend, watchBackend } from '../../src/backend/backend-connection.ts';
import type { BackendRequest, ExchangeLimits, HeldConnection, Sale } from '../../src/backend/backend-exchange.ts';
import { answering, call, GET, type Got, lost, notSent, POST, saleOf, silent } from './call.ts';
import { answer, type RawBackend, rawBackend, type Script } from './raw-backend.ts';

/** Payers without an answer that stop the sales of a backend. */
const SILENT_PAYERS = 3;

describe('a connection that is held for a call', () => {
  let backend: RawBackend;
  let watched: WatchedBackend;
  let script: Script;
  const changes: string[] = [];
  beforeEach(async () => {
    script = answering;
    backend = await rawBackend((socket, request) => script(socket, request));
    changes.length = 0;
  });
  afterEach(async () => {
    await watched.abort();
    await backend.close();
  });

  /** Watches the backend, whose state is known when this resolves. */
  const watch = async (
    options: { readonly maxSockets?: number; readonly probe?: string; readonly origin?: string } = {},
  ): Promise<void> => {
    const { probe, origin = backend.origin, ...rest } = options;
    watched = watchBackend({
      origin,
      ...rest,
      probe: probe === undefined ? undefined : { path: probe, headers: { authorization: 'configured' } },
      onChange: (reach) => changes.push(reach.reachable ? 'reachable' : reach.trouble),
    });
    const opened = backend.accepted() + 1;
    while (origin === backend.origin && (backend.accepted() < opened || backend.open() > 0)) await pause(1);
  };
  const held = async (sale: Sale = saleOf()): Promise<HeldConnection> => {
    const got = await watched.reserve(sale);
    assert.ok(got !== undefined, JSON.stringify(watched.facts()));
    return got;
  };
  const send = (
    { exchange }: Pick<HeldConnection, 'exchange'>,
    request: BackendRequest = POST,
    limits?: Partial<ExchangeLimits>,
  ): Promise<Got> => call({ exchange }, request, limits);
  /** Ends the backend; the result starts it again at the same address. */
  const away = async (): Promise<() => Promise<void>> => {
    const port = Number(new URL(backend.origin).port);
    await backend.close();
    return async () => {
      backend = await rawBackend((socket, request) => script(socket, request), port);
    };
  };
  /** A call whose money has moved and that is not answered. */
  const unanswered = async (sale: Sale = saleOf(), timeoutMs = 50): Promise<void> => {
    assert.deepEqual(await send(await held(sale), POST, { timeoutMs, sale }), lost('timeout'));
  };
  const openBySilence = async (): Promise<void> => {
    script = silent;
    for (const resourceId of ['one', 'one', 'two']) {
      assert.equal(watched.facts().state, 'closed');
      await unanswered(saleOf({ resourceId }));
    }
    assert.equal(watched.facts().state, 'open');
  };

  it('is open, sends nothing to the backend, and carries the call', async () => {
    await watch();
    const opened = backend.accepted();
    const one = await held();
    const other = await held();
    assert.deepEqual([backend.accepted() - opened, backend.open(), backend.requests.length], [2, 2, 0]);
    assert.equal(watched.facts().held, 2);
    assert.equal((await send(other)).kind, 'answer');
    assert.equal((await send(one)).kind, 'answer');
    assert.deepEqual(
      backend.requests.map(({ connection, nth }) => `${connection - opened}.${nth}`),
      ['2.1', '1.1'],
    );
    assert.equal(watched.facts().held, 0);
  });

  it('is one that was used a moment ago, else a new one, before the settlement and after it', async () => {
    await watch();
    const opened = backend.accepted();
    for (let i = 0; i < 3; i += 1) assert.equal((await send(await held())).kind, 'answer');
    assert.equal(backend.accepted() - opened, 1);
    await pause(1_050);
    const late = await held();
    assert.equal(backend.accepted() - opened, 2);
    assert.equal((await send(late)).kind, 'answer');
    const long = await held();
    assert.equal(backend.accepted() - opened, 2);
    await pause(1_050);
    assert.equal((await send(long)).kind, 'answer');
    assert.deepEqual(
      backend.requests.map(({ connection, nth }) => `${connection - opened}.${nth}`),
      ['1.1', '1.2', '1.3', '2.1', '3.1'],
    );
  });

  it('that is given back unused is closed, and its socket is free', async () => {
    await watch({ maxSockets: 2 });
    for (let i = 0; i < 5; i += 1) (await held()).release();
    await backend.settledTo(0);
    assert.equal((await call(watched)).kind, 'answer');
    assert.equal(watched.inFlight(), 0);
  });

  it('is refused while the backend is away, to which only trials connect', async () => {
    await watch();
    const back = await away();
    assert.equal(await watched.reserve(saleOf()), undefined);
    assert.equal(await watched.reserve(saleOf()), undefined);
    assert.deepEqual(watched.facts().refused, { breaker: 1, connect: 1, sockets: 0 });
    assert.deepEqual(changes, ['refused']);
    await back();
    const since = performance.now();
    while (watched.facts().state !== 'closed') await pause(5);
    assert.ok(performance.now() - since < 2_500, 'closed again within two seconds and a busy machine');
    assert.equal((await send(await held())).kind, 'answer');
    assert.deepEqual(changes, ['refused', 'reachable']);
  });

  it('is refused of a backend that was away at start, which is reported', async () => {
    const back = await away();
    void watch();
    while (changes.length === 0) await pause(1);
    assert.deepEqual(changes, ['refused']);
    assert.equal(await watched.reserve(saleOf()), undefined);
    await back();
    while (watched.facts().state !== 'closed') await pause(5);
    (await held()).release();
  });

  it('is refused of a backend that closes what it accepts, as soon as that is known', async (t) => {
    const closing = createServer((socket) => socket.destroy());
    t.after(() => closing.close());
    closing.listen(0, '127.0.0.1');
    await once(closing, 'listening');
    const address = closing.address();
    assert.ok(address !== null && typeof address === 'object');
    await watch({ origin: `http://127.0.0.1:${address.port}` });
    // How soon a close is seen depends on the machine; this backend only ever causes silences.
    while (watched.facts().state !== 'open') (await watched.reserve(saleOf()))?.release();
    assert.equal(await watched.reserve(saleOf()), undefined);
    assert.deepEqual(changes, ['silent']);
  });

  it('is opened again when the backend closes it, and then carries a POST', async () => {
    await watch();
    const opened = backend.accepted();
    const one = await held();
    backend.closeAll();
    while (backend.accepted() < opened + 2) await pause(1);
    assert.equal((await send(one)).kind, 'answer');
    assert.equal(backend.requests.length, 1);
  });

  it('is opened again until the deadline when the backend restarts, for any method', async () => {
    await watch();
    const ones = [await held(), await held()];
    const back = await away();
    const sent = ones.map((one) => send(one, POST, { timeoutMs: 10_000 }));
    await pause(300);
    await back();
    for (const got of await Promise.all(sent)) assert.equal(got.kind, 'answer');
    assert.equal(backend.requests.length, 2);
  });

  it('of a backend that stays away fails at the deadline and not before, with nothing written', async () => {
    await watch();
    const one = await held();
    await away();
    const began = performance.now();
    const got = await send(one, POST, { timeoutMs: 400 });
    assert.deepEqual(got, notSent('unreachable'));
    assert.ok(performance.now() - began >= 390);
    assert.equal(watched.inFlight(), 0);
  });

  for (const [request, sent] of [
    [POST, 1],
    [GET, 2],
  ] as const)
    it(`that breaks during a ${request.method}, which may have arrived, sends it ${sent === 1 ? 'no more' : 'once more'}`, async () => {
      await watch();
      script = (socket) => void socket.resetAndDestroy();
      const got = await send(await held(), request);
      assert.deepEqual(got, lost('transport'));
      assert.equal(backend.requests.length, sent);
    });

  it('sends a GET once more when the backend died with it and is back', async () => {
    await watch();
    script = silent;
    const sent = send(await held(), GET, { timeoutMs: 10_000 });
    while (backend.requests.length === 0) await pause(1);
    const back = await away();
    await pause(120);
    script = answering;
    await back();
    assert.equal((await sent).kind, 'answer');
    assert.equal(backend.requests.length, 1, 'of the new process');
  });

  it('takes one of the sockets, of which at most half are held', async () => {
    await watch({ maxSockets: 4 });
    const ones = [await held(), await held()];
    assert.equal(await watched.reserve(saleOf()), undefined);
    assert.deepEqual(watched.facts().refused, { breaker: 0, connect: 0, sockets: 1 });
    // Two of four are held and one is for trials: free calls share the last one.
    const waiting: Socket[] = [];
    script = (socket) => void waiting.push(socket);
    const free = [call(watched), call(watched)];
    while (waiting.length < 1) await pause(1);
    await pause(20);
    assert.equal(waiting.length, 1);
    ones[0]?.release();
    while (waiting.length < 2) await pause(1);
    for (const socket of waiting) answer(socket);
    for (const got of await Promise.all(free)) assert.equal(got.kind, 'answer');
    ones[1]?.release();
  });

  it('is refused while all sockets are in use, after a bounded wait', async () => {
    await watch({ maxSockets: 2 });
    script = silent;
    const running = call(watched, POST, { timeoutMs: 4_000 });
    while (backend.requests.length === 0) await pause(1);
    assert.equal(await watched.reserve(saleOf()), undefined);
    assert.deepEqual(watched.facts().refused, { breaker: 0, connect: 0, sockets: 1 });
    backend.closeAll();
    await running;
  });

  describe('of a backend that takes requests and does not answer', () => {
    it('is refused after three payers of two resources; then one at a time, until the first answer', async () => {
      await watch();
      await openBySilence();
      assert.equal(await watched.reserve(saleOf()), undefined);
      while (watched.facts().state !== 'probation') await pause(1);
      const sale = saleOf();
      const one = await held(sale);
      assert.equal(await watched.reserve(saleOf()), undefined, 'one at a time');
      assert.equal((await send(one, POST, { timeoutMs: 50, sale })).kind, 'failed');
      assert.equal(watched.facts().state, 'open');
      script = (socket) => answer(socket, 'late', 'HTTP/1.1 503 Service Unavailable');
      while (watched.facts().state !== 'probation') await pause(1);
      assert.equal(await watched.reserve(sale), undefined, 'the payer that got no answer leaves the place to others');
      const other = saleOf();
      assert.equal((await send(await held(other), POST, { sale: other })).kind, 'answer');
      assert.equal(watched.facts().state, 'closed');
      for (const later of [await held(), await held()]) later.release();
    });

    it('on trust a call that is not paid yet is granted and takes no place', async () => {
      await watch();
      await openBySilence();
      while (watched.facts().state !== 'probation') await pause(1);
      const unpaid = [await held(saleOf({ settle: 'after' })), await held(saleOf({ settle: 'after' }))];
      const sold = await held();
      for (const one of [...unpaid, sold]) one.release();
    });

    it('stops the sales of a resource after three payers, then has one call at a time, and others are sold', async () => {
      await watch();
      script = silent;
      const sales = [saleOf(), saleOf(), saleOf()];
      for (const sale of sales) await unanswered(sale);
      const [first] = sales;
      assert.equal(watched.facts().state, 'closed');
      assert.equal(await watched.reserve(saleOf({ payer: first?.payer.toUpperCase() ?? '' })), undefined);
      const one = await held();
      assert.equal(await watched.reserve(saleOf()), undefined, 'one at a time');
      (await held(saleOf({ resourceId: 'two' }))).release();
      script = answering;
      const sale = saleOf();
      assert.equal((await send(one, POST, { sale })).kind, 'answer');
      for (const later of [await held(), await held(first)]) later.release();
    });

    it('counts three payments of one payer against that payer alone, and one payment once', async () => {
      await watch();
      script = silent;
      const payment = saleOf();
      for (let again = 0; again < 2 * SILENT_PAYERS; again += 1) await unanswered(payment);
      for (const payId of ['second', 'third']) await unanswered({ ...payment, payId });
      assert.equal(await watched.reserve({ ...payment, payId: 'fourth' }), undefined);
      for (const later of [await held(), await held()]) later.release();
    });

    it('counts nothing of a call while others of its resource are answered', async () => {
      await watch();
      script = silent;
      const hung = Array.from({ length: 4 }, async () => unanswered(undefined, 700));
      while (backend.requests.length < 4) await pause(1);
      script = answering;
      const sale = saleOf();
      assert.equal((await send(await held(sale), POST, { sale })).kind, 'answer');
      await Promise.all(hung);
      for (const later of [await held(), await held()]) later.release();
    });

    it('is granted when only calls that are settled after it were not answered, however many', async () => {
      await watch();
      script = silent;
      for (let n = 0; n < 2 * SILENT_PAYERS; n += 1) {
        const sale = saleOf({ resourceId: `resource ${n}`, settle: 'after' });
        assert.equal((await send(await held(sale), GET, { timeoutMs: 20 })).kind, 'failed');
      }
      assert.equal(watched.facts().state, 'closed');
      (await held()).release();
    });

    it('leaves half of the sockets to calls that are paid first', async () => {
      await watch({ maxSockets: 4 });
      script = silent;
      const running = Array.from({ length: 2 }, async () =>
        send(await held(saleOf({ settle: 'after' })), POST, { timeoutMs: 300 }),
      );
      while (backend.requests.length < 2) await pause(1);
      assert.equal(await watched.reserve(saleOf({ settle: 'after' })), undefined);
      (await held()).release();
      await Promise.all(running);
      (await held(saleOf({ settle: 'after' }))).release();
    });

    it('does not write a request that is not written yet: a POST stays collectable', async () => {
      await watch();
      const settling = await held();
      await openBySilence();
      const got = await send(settling, POST, { timeoutMs: 150 });
      assert.deepEqual(got, notSent('unreachable'));
      assert.equal(backend.requests.length, SILENT_PAYERS);
    });

    it('is granted when only free calls were not answered, which any caller can cause', async () => {
      await watch();
      script = silent;
      const { signal } = new AbortController();
      for (let i = 0; i < 2 * SILENT_PAYERS; i += 1) await call(watched, GET, { timeoutMs: 20, signal });
      assert.equal(watched.facts().state, 'closed');
      (await held()).release();
    });
  });

  describe('of a backend with a probe', () => {
    const probes = (): number => backend.requests.filter(({ head }) => head.startsWith('GET /alive ')).length;

    it('is refused when the probe is not answered, before anything is lost', async () => {
      script = silent;
      await watch({ probe: '/alive' });
      assert.equal(await watched.reserve(saleOf()), undefined);
      assert.deepEqual(changes, ['silent']);
      assert.match(backend.requests[0]?.head ?? '', /^authorization: configured$/im);
    });

    it('is granted after any answer, without a new probe while answers are fresh', async () => {
      script = (socket) => answer(socket, 'tired', 'HTTP/1.1 500 Internal Server Error');
      await watch({ probe: '/alive' });
      while (probes() < 1) await pause(1);
      for (let i = 0; i < 5; i += 1) (await held()).release();
      assert.equal(probes(), 1);
      await pause(1_050);
      await Promise.all([held(), held()]).then((ones) => ones.map((one) => one.release()));
      assert.equal(probes(), 2);
    });

    it('is granted again as soon as the probe is answered, without probation', async () => {
      script = silent;
      await watch({ probe: '/alive' });
      await watched.reserve(saleOf());
      script = answering;
      while (watched.facts().state === 'open') await pause(5);
      assert.equal(watched.facts().state, 'closed');
      for (const one of [await held(), await held()]) one.release();
    });
  });

  describe('when exchanges are interrupted', () => {
    beforeEach(async () => {
      script = silent;
      await watch({ maxSockets: 4 });
    });
    const arrived = async (count: number): Promise<void> => {
      while (backend.requests.length < count) await pause(1);
    };

    it('fail at once: those that run, those that wait for a socket, and those that hold a connection', async () => {
      const one = await held();
      const running = [call(watched, POST), call(watched, POST)];
      await arrived(2);
      const waiting = [call(watched, POST), call(watched, POST)];
      assert.deepEqual([watched.inFlight(), watched.paidInFlight(), watched.facts().held], [4, 4, 1]);
      await watched.interrupt();
      assert.deepEqual(await Promise.all(running), [lost('transport'), lost('transport')]);
      assert.deepEqual(await Promise.all(waiting), [notSent('unreachable'), notSent('unreachable')]);
      assert.deepEqual(await call(one, POST), notSent('unreachable'));
      assert.deepEqual(await call(watched, GET), notSent('unreachable'), 'nothing begins');
      assert.deepEqual([watched.inFlight(), watched.paidInFlight(), backend.requests.length], [0, 0, 2]);
    });

    it('leave no mark: later ones are answered, over as many sockets as before, and the breaker is closed', async () => {
      const running = Array.from({ length: 3 }, () => call(watched, POST));
      await arrived(3);
      await watched.interrupt();
      await Promise.all(running);
      // Longer than a held connection waits before it is opened again.
      await pause(80);
      watched.resume();
      script = answering;
      const one = await held();
      const later = await Promise.all([call(one, POST), call(watched, POST), call(watched, GET), call(watched, GET)]);
      assert.deepEqual(
        later.map(({ kind }) => kind),
        ['answer', 'answer', 'answer', 'answer'],
      );
      assert.deepEqual([watched.facts().state, changes], ['closed', []]);
    });

    it('are counted apart from those that end with their caller', async () => {
      const leaving = new AbortController();
      const calls = [call(watched, GET, { signal: leaving.signal }), call(watched, POST)];
      await arrived(2);
      assert.deepEqual([watched.inFlight(), watched.paidInFlight()], [2, 1]);
      leaving.abort();
      await calls[0];
      assert.deepEqual([watched.inFlight(), watched.paidInFlight()], [1, 1]);
      await watched.interrupt();
      await calls[1];
      assert.equal(watched.paidInFlight(), 0);
    });
  });
});
