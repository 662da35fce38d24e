import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { backendReplaced, type ConnectionEnd, tryConnection } from '../../src/sidecar/pod-hooks.ts';
import { freePorts } from '../support/ports.ts';

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
