import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type WatchedBackend, watchBackend } from '../../src/backend/backend-connection.ts';
import { SILENCES_TO_OPEN } from '../../src/backend/circuit-breaker.ts';
import type { BackendRequest, ExchangeLimits, HeldConnection } from '../../src/backend/exchange.ts';
import { call, GET, type Got, POST } from './call.ts';
import { answer, type RawBackend, rawBackend, type Script } from './raw-backend.ts';

describe('a connection that is held for a call', () => {
  let backend: RawBackend;
  let merchant: WatchedBackend;
  let script: Script;
  const told: string[] = [];
  beforeEach(async () => {
    script = (socket) => answer(socket);
    backend = await rawBackend((socket, request) => script(socket, request));
    told.length = 0;
  });
  afterEach(async () => {
    await merchant.abort();
    await backend.close();
  });

  /** Watches over the merchant, whose state is known when this resolves. */
  const watch = async (
    options: { readonly maxSockets?: number; readonly probe?: string; readonly origin?: string } = {},
  ): Promise<void> => {
    const { probe, origin = backend.origin, ...rest } = options;
    merchant = watchBackend({
      origin,
      ...rest,
      probe: probe === undefined ? undefined : { path: probe, headers: { authorization: 'configured' } },
      onChange: (reach) => told.push(reach.reachable ? 'reachable' : reach.trouble),
    });
    const opened = backend.accepted() + 1;
    while (origin === backend.origin && (backend.accepted() < opened || backend.open() > 0)) await pause(1);
  };
  const held = async (): Promise<HeldConnection> => {
    const got = await merchant.reserve();
    assert.ok(got !== undefined, JSON.stringify(merchant.facts()));
    return got;
  };
  const send = (
    { exchange }: Pick<HeldConnection, 'exchange'>,
    request: BackendRequest = POST,
    limits?: Partial<ExchangeLimits>,
  ): Promise<Got> => call({ exchange }, request, limits);
  /** A merchant that was there and is away; `back` brings him to the same address. */
  const away = async (): Promise<() => Promise<void>> => {
    const port = Number(new URL(backend.origin).port);
    await backend.close();
    return async () => {
      backend = await rawBackend((socket, request) => script(socket, request), port);
    };
  };
  const hang: Script = () => {};
  const silenced = async (): Promise<void> => {
    script = hang;
    for (let i = 0; i < SILENCES_TO_OPEN; i += 1)
      assert.equal((await send(await held(), POST, { timeoutMs: 50 })).kind, 'failed');
    assert.equal(merchant.facts().state, 'open');
  };

  it('is open, brings nothing to the merchant, and is the one that the call travels on', async () => {
    await watch();
    const opened = backend.accepted();
    const one = await held();
    const other = await held();
    assert.deepEqual([backend.accepted() - opened, backend.open(), backend.requests.length], [2, 2, 0]);
    assert.equal(merchant.facts().held, 2);
    assert.equal((await send(other)).kind, 'answer');
    assert.equal((await send(one)).kind, 'answer');
    assert.deepEqual(
      backend.requests.map(({ connection, nth }) => `${connection - opened}.${nth}`),
      ['2.1', '1.1'],
    );
    assert.equal(merchant.facts().held, 0);
  });

  it('is one that was used a moment ago, and a new one when that is longer ago, before the money moves or afterwards', async () => {
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

  it('that is given back unused is closed, and its place is free', async () => {
    await watch({ maxSockets: 2 });
    for (let i = 0; i < 5; i += 1) (await held()).release();
    await backend.settledTo(0);
    assert.equal((await call(merchant)).kind, 'answer');
    assert.equal(merchant.inFlight(), 0);
  });

  it('is not had of a merchant who is away; from then on nobody asks him but the trials', async () => {
    await watch();
    const back = await away();
    assert.equal(await merchant.reserve(), undefined);
    assert.equal(await merchant.reserve(), undefined);
    assert.deepEqual(merchant.facts().refused, { breaker: 1, connect: 1, sockets: 0 });
    assert.deepEqual(told, ['refused']);
    await back();
    const since = performance.now();
    while (merchant.facts().state !== 'closed') await pause(5);
    assert.ok(performance.now() - since < 2_500, 'closed again within two seconds and a busy machine');
    assert.equal((await send(await held())).kind, 'answer');
    assert.deepEqual(told, ['refused', 'reachable']);
  });

  it('is not had of a merchant who was not there when the watch began, which is told', async () => {
    const back = await away();
    merchant = watchBackend({
      origin: backend.origin,
      probe: undefined,
      onChange: (reach) => told.push(reach.reachable ? 'reachable' : reach.trouble),
    });
    while (told.length === 0) await pause(1);
    assert.deepEqual(told, ['refused']);
    assert.equal(await merchant.reserve(), undefined);
    await back();
    while (merchant.facts().state !== 'closed') await pause(5);
    (await held()).release();
  });

  it('is not had of a merchant who closes what he accepts, as soon as that is known', async (t) => {
    const closing = createServer((socket) => socket.destroy());
    t.after(() => closing.close());
    closing.listen(0, '127.0.0.1');
    await once(closing, 'listening');
    const address = closing.address();
    assert.ok(address !== null && typeof address === 'object');
    await watch({ origin: `http://127.0.0.1:${address.port}` });
    // How soon a close is seen is up to the machine; nothing but silences is ever seen of this one.
    while (merchant.facts().state !== 'open') (await merchant.reserve())?.release();
    assert.equal(await merchant.reserve(), undefined);
    assert.deepEqual(told, ['silent']);
  });

  it('is opened again when the merchant closes it, and then carries a POST', async () => {
    await watch();
    const opened = backend.accepted();
    const one = await held();
    backend.closeAll();
    while (backend.accepted() < opened + 2) await pause(1);
    assert.equal((await send(one)).kind, 'answer');
    assert.equal(backend.requests.length, 1);
  });

  it('whose merchant dies and comes back is opened again until the deadline, whatever the method', async () => {
    await watch();
    const ones = [await held(), await held()];
    const back = await away();
    const sent = ones.map((one) => send(one, POST, { timeoutMs: 10_000 }));
    await pause(300);
    await back();
    for (const got of await Promise.all(sent)) assert.equal(got.kind, 'answer');
    assert.equal(backend.requests.length, 2);
  });

  it('whose merchant stays away: nothing was written, which is certain at the deadline and not before', async () => {
    await watch();
    const one = await held();
    await away();
    const began = performance.now();
    const got = await send(one, POST, { timeoutMs: 400 });
    assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
    assert.ok(performance.now() - began >= 390);
    assert.equal(merchant.inFlight(), 0);
  });

  for (const [request, sent] of [
    [POST, 1],
    [GET, 2],
  ] as const)
    it(`that breaks with a ${request.method} on it: the request may have arrived, so it is sent ${sent === 1 ? 'no more' : 'once more'}`, async () => {
      await watch();
      script = (socket) => void socket.resetAndDestroy();
      const got = await send(await held(), request);
      assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'transport', requestWritten: true });
      assert.equal(backend.requests.length, sent);
    });

  it('whose merchant dies with a GET in his hands: he gets it once more when he is back', async () => {
    await watch();
    script = hang;
    const sent = send(await held(), GET, { timeoutMs: 10_000 });
    while (backend.requests.length === 0) await pause(1);
    const back = await away();
    await pause(120);
    script = (socket) => answer(socket);
    await back();
    assert.equal((await sent).kind, 'answer');
    assert.equal(backend.requests.length, 1, 'of the one who came back');
  });

  it('takes a place among the sockets, of which at most half are held', async () => {
    await watch({ maxSockets: 4 });
    const ones = [await held(), await held()];
    assert.equal(await merchant.reserve(), undefined);
    assert.deepEqual(merchant.facts().refused, { breaker: 0, connect: 0, sockets: 1 });
    // Two of four are held and one is the trials': the last one is for everybody else, one at a
    // time.
    const waiting: Socket[] = [];
    script = (socket) => void waiting.push(socket);
    const free = [call(merchant), call(merchant)];
    while (waiting.length < 1) await pause(1);
    await pause(20);
    assert.equal(waiting.length, 1);
    ones[0]?.release();
    while (waiting.length < 2) await pause(1);
    for (const socket of waiting) answer(socket);
    for (const got of await Promise.all(free)) assert.equal(got.kind, 'answer');
    ones[1]?.release();
  });

  it('is not had while all sockets are in use, and the wait for one is bounded', async () => {
    await watch({ maxSockets: 2 });
    script = hang;
    const running = call(merchant, POST, { timeoutMs: 4_000 });
    while (backend.requests.length === 0) await pause(1);
    assert.equal(await merchant.reserve(), undefined);
    assert.deepEqual(merchant.facts().refused, { breaker: 0, connect: 0, sockets: 1 });
    backend.closeAll();
    await running;
  });

  describe('of a merchant who takes requests and does not answer', () => {
    it('is refused after the third in a row; then one at a time, until the first answer', async () => {
      await watch();
      await silenced();
      assert.equal(await merchant.reserve(), undefined);
      while (merchant.facts().state !== 'probation') await pause(1);
      const one = await held();
      assert.equal(await merchant.reserve(), undefined, 'one at a time');
      assert.equal((await send(one, POST, { timeoutMs: 50 })).kind, 'failed');
      assert.equal(merchant.facts().state, 'open');
      script = (socket) => answer(socket, 'late', 'HTTP/1.1 503 Service Unavailable');
      while (merchant.facts().state !== 'probation') await pause(1);
      assert.equal((await send(await held())).kind, 'answer');
      assert.equal(merchant.facts().state, 'closed');
      for (const later of [await held(), await held()]) later.release();
    });

    it('does not write what it has not written yet: a POST stays collectable', async () => {
      await watch();
      const settling = await held();
      await silenced();
      const got = await send(settling, POST, { timeoutMs: 150 });
      assert.deepEqual(got, { kind: 'failed', at: 'head', reason: 'unreachable', requestWritten: false });
      assert.equal(backend.requests.length, SILENCES_TO_OPEN);
    });

    it('is had when only free calls were not answered: those are cheap to lose, for everybody', async () => {
      await watch();
      script = hang;
      const { signal } = new AbortController();
      for (let i = 0; i < 2 * SILENCES_TO_OPEN; i += 1) await call(merchant, GET, { timeoutMs: 20, signal });
      assert.equal(merchant.facts().state, 'closed');
      (await held()).release();
    });
  });

  describe('of a merchant who may be asked', () => {
    const probes = (): number => backend.requests.filter(({ head }) => head.startsWith('GET /alive ')).length;

    it('is refused when he does not answer, before anything was lost', async () => {
      script = hang;
      await watch({ probe: '/alive' });
      assert.equal(await merchant.reserve(), undefined);
      assert.deepEqual(told, ['silent']);
      assert.match(backend.requests[0]?.head ?? '', /^authorization: configured$/im);
    });

    it('is had when he says anything, and he is not asked again while he is heard', async () => {
      script = (socket) => answer(socket, 'tired', 'HTTP/1.1 500 Internal Server Error');
      await watch({ probe: '/alive' });
      while (probes() < 1) await pause(1);
      for (let i = 0; i < 5; i += 1) (await held()).release();
      assert.equal(probes(), 1);
      await pause(1_050);
      await Promise.all([held(), held()]).then((ones) => ones.map((one) => one.release()));
      assert.equal(probes(), 2);
    });

    it('is had again as soon as he answers the probe, without a sale on trust', async () => {
      script = hang;
      await watch({ probe: '/alive' });
      await merchant.reserve();
      script = (socket) => answer(socket);
      while (merchant.facts().state === 'open') await pause(5);
      assert.equal(merchant.facts().state, 'closed');
      for (const one of [await held(), await held()]) one.release();
    });
  });
});
