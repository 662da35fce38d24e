import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createFence, createLifecycle } from '../../src/sidecar/lifecycle.ts';
import {
  backendReplaced,
  type ConnectionEnd,
  DRAIN_ARRIVES_MS,
  FREE_CALLS_MS,
  openPodHooks,
  SIGNAL_COMES_MS,
  tryConnection,
} from '../../src/sidecar/pod-hooks.ts';
import { freePorts } from '../support/ports.ts';

const GRACE_MS = 20_000;
const FINISH_MS = 70_000;

/** Hooks over a lifecycle and a fence, and all that happened. */
function opened(
  changes: {
    readonly listenAgain?: () => Promise<void>;
    readonly preStop?: () => Promise<void>;
    readonly endsWithinMs?: number;
  } = {},
) {
  const lifecycle = createLifecycle();
  const fence = createFence();
  const notes: string[] = [];
  const facts = { running: { paid: 0, free: 0 }, port: 'opened' as ConnectionEnd };
  const hooks = openPodHooks({
    lifecycle,
    fence,
    drainSteps: () => ({
      propagationMs: 5_000,
      finishMs: FINISH_MS,
      stopListening: () => void notes.push('not listening'),
    }),
    running: () => facts.running,
    preStop: changes.preStop ?? (async () => void notes.push('preStop')),
    look: async () => facts.port,
    backendIsBack: async () => void notes.push('tried'),
    merchantGraceMs: GRACE_MS,
    podGraceMs: GRACE_MS + FINISH_MS,
    endsWithinMs: changes.endsWithinMs,
    listenAgain: changes.listenAgain ?? (async () => void notes.push('listening')),
    note: (note) => void notes.push(note),
  });
  /** Whether a hook was answered. */
  const asked = (hook: Promise<void>): { answered: boolean } => {
    const answer = { answered: false };
    void hook.then(() => {
      answer.answered = true;
    });
    return answer;
  };
  return { hooks, lifecycle, fence, notes, facts, asked };
}

/** Lets time pass in small steps, so that what waits in turns of the event loop goes on. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    await turn();
    mock.timers.tick(Math.min(10, left));
  }
  await turn();
}

describe('the hooks of a pod', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('keep the backend of a pod that ends until the last call is over', async () => {
    const { hooks, lifecycle, fence, notes, asked } = opened();
    const release = asked(hooks.release());
    await pass(DRAIN_ARRIVES_MS - 10);
    const end = lifecycle.begin();
    const drain = asked(hooks.drain());
    await pass(5_000);
    assert.deepEqual(notes, ['draining', 'not listening']);
    assert.deepEqual([release.answered, drain.answered, fence.state()], [false, false, 'down']);
    end();
    await pass(10);
    assert.deepEqual([release.answered, drain.answered], [true, true]);
    assert.deepEqual(notes, ['draining', 'not listening', 'drained', 'preStop']);
    hooks.stop();
  });

  it('answer /release of a pod that is drained already', async () => {
    const { hooks, notes, asked } = opened();
    void hooks.drain();
    await pass(5_010);
    const release = asked(hooks.release());
    await pass(10);
    assert.ok(release.answered);
    assert.deepEqual(notes.slice(-2), ['drained', 'preStop']);
    hooks.stop();
  });

  it('raise the fence for a backend that ends alone, and release it when nothing needs it', async () => {
    const { hooks, lifecycle, fence, notes, facts, asked } = opened();
    facts.running = { paid: 1, free: 0 };
    const release = asked(hooks.release());
    await pass(DRAIN_ARRIVES_MS - 10);
    assert.equal(fence.state(), 'down', 'the drain may still come');
    await pass(FINISH_MS - 100);
    assert.deepEqual([fence.state(), release.answered], ['raised', false]);
    facts.running = { paid: 0, free: 0 };
    await pass(30);
    assert.deepEqual([fence.state(), release.answered, lifecycle.state()], ['released', true, 'open']);
    assert.deepEqual(notes, ['fenced', 'preStop', 'backend released']);
    await pass(3_000);
    assert.equal(fence.state(), 'released', 'the old process still listens');
    facts.port = 'refused';
    await pass(1_500);
    facts.port = 'opened';
    await pass(200);
    assert.deepEqual([fence.state(), notes.slice(3)], ['down', ['tried', 'backend replaced']]);
  });

  it('keep a backend that restarts ten seconds for what costs nothing, and no longer', async () => {
    const { hooks, facts, asked } = opened();
    facts.running = { paid: 0, free: 1 };
    const release = asked(hooks.release());
    await pass(DRAIN_ARRIVES_MS + FREE_CALLS_MS - 50);
    assert.equal(release.answered, false);
    await pass(100);
    assert.ok(release.answered);
    hooks.stop();
  });

  it('keep it for paid calls as long as a drain would, and no longer', async () => {
    const { hooks, facts, asked } = opened();
    facts.running = { paid: 1, free: 0 };
    const release = asked(hooks.release());
    await pass(DRAIN_ARRIVES_MS + FINISH_MS - 50);
    assert.equal(release.answered, false);
    await pass(100);
    assert.ok(release.answered);
    hooks.stop();
  });

  it('lower the fence when the drain comes after all, and keep the backend until its end', async () => {
    const { hooks, lifecycle, fence, facts, asked } = opened();
    facts.running = { paid: 1, free: 0 };
    const end = lifecycle.begin();
    const release = asked(hooks.release());
    await pass(DRAIN_ARRIVES_MS + 1_000);
    assert.equal(fence.state(), 'raised');
    void hooks.drain();
    await pass(6_000);
    assert.deepEqual([fence.state(), release.answered], ['down', false]);
    end();
    await pass(10);
    assert.ok(release.answered);
    hooks.stop();
  });

  it('lower it at last for a backend that never comes back', async () => {
    const { hooks, fence, facts, notes } = opened();
    facts.port = 'refused';
    void hooks.release();
    await pass(DRAIN_ARRIVES_MS + GRACE_MS + FINISH_MS - 1_000);
    assert.equal(fence.state(), 'released');
    await pass(2_000);
    assert.deepEqual([fence.state(), notes.at(-1)], ['down', 'backend not replaced in time']);
  });

  it('keep the fence up for a backend that is released again before it came back', async () => {
    const { hooks, fence, facts } = opened();
    facts.port = 'refused';
    void hooks.release();
    await pass(DRAIN_ARRIVES_MS + 1_000);
    void hooks.release();
    await pass(DRAIN_ARRIVES_MS - 50);
    facts.port = 'opened';
    await pass(1_000);
    assert.equal(fence.state(), 'released', 'the one that listens is the one that was released last');
    facts.port = 'refused';
    await pass(200);
    facts.port = 'opened';
    await pass(200);
    assert.equal(fence.state(), 'down');
  });

  it('answer all that ask at the same time together', async () => {
    const { hooks, notes, asked } = opened();
    const both = [asked(hooks.release()), asked(hooks.release())];
    await pass(DRAIN_ARRIVES_MS + 50);
    assert.deepEqual(
      [both.map(({ answered }) => answered), notes],
      [
        [true, true],
        ['fenced', 'preStop', 'backend released'],
      ],
    );
    hooks.stop();
  });
});

describe('a drained process that gets no signal', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('opens again after half a minute, and drains anew', async () => {
    const { hooks, lifecycle, notes } = opened();
    void hooks.drain();
    await pass(5_010 + SIGNAL_COMES_MS - 20);
    assert.equal(lifecycle.state(), 'drained');
    await pass(30);
    assert.equal(lifecycle.state(), 'open');
    assert.deepEqual(notes.slice(-2), ['listening', 'open again']);
    void hooks.drain();
    await pass(5_010);
    assert.equal(lifecycle.state(), 'drained');
    hooks.stop();
  });

  it('waits as much longer as a backend may take to end that was released with it', async () => {
    const { hooks, lifecycle } = opened();
    void hooks.release();
    void hooks.drain();
    await pass(5_010 + SIGNAL_COMES_MS + GRACE_MS - 20);
    assert.equal(lifecycle.state(), 'drained');
    await pass(30);
    assert.equal(lifecycle.state(), 'open');
  });

  it('waits for the whole grace of a pod that tells it', async () => {
    const { hooks, lifecycle } = opened({ endsWithinMs: 3 * SIGNAL_COMES_MS });
    void hooks.drain();
    await pass(5_010 + 2 * SIGNAL_COMES_MS);
    assert.equal(lifecycle.state(), 'drained');
    await pass(SIGNAL_COMES_MS);
    assert.equal(lifecycle.state(), 'open');
  });

  it('fails when it cannot', async () => {
    const { hooks, lifecycle } = opened({ listenAgain: () => Promise.reject(new Error('taken')) });
    void hooks.drain();
    await pass(5_010 + SIGNAL_COMES_MS);
    await assert.rejects(hooks.failed, /taken/);
    assert.equal(lifecycle.state(), 'drained');
  });

  it('stays closed once its signal is there', async () => {
    const { hooks, lifecycle } = opened();
    void hooks.drain();
    await pass(5_010);
    hooks.stop();
    await hooks.drain();
    await pass(SIGNAL_COMES_MS + 100);
    assert.equal(lifecycle.state(), 'drained');
  });
});

describe('the wait for a backend that restarts', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  /** What it says of a backend whose connections end so, and at last as the last one. */
  async function waited(
    ends: readonly ConnectionEnd[],
    atMostMs = 60_000,
  ): Promise<{ replaced?: boolean; looks: number }> {
    const result: { replaced?: boolean; looks: number } = { looks: 0 };
    const look = async () => ends[Math.min(result.looks++, ends.length - 1)] ?? 'silent';
    void backendReplaced({ look, atMostMs }, new AbortController().signal).then((replaced) => {
      result.replaced = replaced;
    });
    for (let ms = 0; ms < atMostMs + 200 && result.replaced === undefined; ms += 100) {
      await turn();
      mock.timers.tick(100);
    }
    await turn();
    return result;
  }

  it('ends when a backend that exits at once takes connections again', async () => {
    assert.deepEqual(await waited(['refused', 'refused', 'opened']), { replaced: true, looks: 3 });
  });

  it('does not take the old process for the new one, however long it still listens', async () => {
    const slow = Array.from({ length: 300 }, () => 'opened' as const);
    assert.deepEqual(await waited([...slow, 'refused', 'opened']), { replaced: true, looks: 302 });
  });

  it('sees no end in a connection that is neither accepted nor refused', async () => {
    assert.deepEqual(await waited(['opened', 'silent', 'opened'], 2_000), { replaced: false, looks: 20 });
  });

  it('is over with the time of the old process, for a backend that never comes back', async () => {
    assert.deepEqual(await waited(['refused'], 3_000), { replaced: false, looks: 30 });
  });

  it('ends with its signal', async () => {
    const stopped = new AbortController();
    const waits = backendReplaced({ look: async () => 'refused', atMostMs: 60_000 }, stopped.signal);
    await turn();
    stopped.abort();
    mock.timers.tick(100);
    assert.equal(await waits, false);
  });
});

describe('a look at the backend', () => {
  it('tells an open port from a closed one', async () => {
    const [port = 0] = await freePorts(1);
    assert.equal(await tryConnection('127.0.0.1', port), 'refused');
    const server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
    await once(server, 'listening');
    try {
      assert.equal(await tryConnection('127.0.0.1', port), 'opened');
    } finally {
      server.close();
    }
  });
});
