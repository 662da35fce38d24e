import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { HARMLESS_IN_FLIGHT } from '../../../src/server/load-shedding/overload-detector.ts';
import { attack } from '../catalogue.ts';
import { postOf, type WireAnswer, WireClient } from './wire-client.ts';

/** More calls at once than an overloaded process lets in. */
const BURST = 400;
const IDLE = { turnMs: 5, busy: 0.1 };
const DELAYED = { turnMs: 50, busy: 1 };
const DEADLINE_MS = 20_000;

describe('a flood', () => {
  let testbed: Testbed;
  let loop = IDLE;
  let clients: readonly WireClient[];
  before(async () => {
    testbed = await openTestbed({ loop: () => loop });
    const { hostname, port } = new URL(testbed.gateway.url);
    clients = Array.from({ length: BURST }, () => new WireClient(hostname, Number(port)));
    await Promise.all(clients.map((client) => client.connected()));
  });
  after(async () => {
    for (const client of clients) client.close();
    await testbed.close();
  });

  const ask = (client: WireClient, request: Buffer): Promise<WireAnswer> =>
    new Promise((resolve, reject) =>
      client.ask(request, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
    );
  const burst = (headers = {}): Promise<readonly WireAnswer[]> => {
    const request = postOf('/api/resources/cities/invoke', '{}', headers);
    return Promise.all(clients.map((client) => ask(client, request)));
  };
  /** Repeats the burst until its refusals are as expected. */
  const burstUntil = async (wanted: (refused: number) => boolean): Promise<readonly WireAnswer[]> => {
    const deadline = performance.now() + DEADLINE_MS;
    for (;;) {
      const answers = await burst();
      if (wanted(answers.filter(({ status }) => status === 503).length)) return answers;
      assert.ok(performance.now() < deadline, 'the refusals never became as wanted');
    }
  };

  attack('D2', 'none of a large burst is refused while the turns of the event loop are short', async () => {
    const answers = await burst();
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  attack(
    'D2',
    'excess calls are refused at once, and all others are served; after the burst the refusals end',
    async () => {
      testbed.backend.hold();
      // Calls in flight that wait for the backend, fewer than the lowest limit: some others are
      // still admitted.
      const held: Promise<Response>[] = [];
      while (held.length < HARMLESS_IN_FLIGHT / 2) {
        const arrived = testbed.backend.nextRequest('/held');
        held.push(testbed.gateway.invoke('free_held'));
        await arrived;
      }
      loop = DELAYED;
      const answers = await burstUntil((refused) => refused > 0);
      for (const { status, head, body } of answers) {
        assert.ok(status === 200 || status === 503, head);
        if (status !== 503) continue;
        const id = /\r\nx-request-id: (\S+)/.exec(head)?.[1];
        assert.match(head, /\r\nretry-after: 1\b/);
        assert.doesNotMatch(head, /\r\nconnection: close/i);
        const message = 'The gateway is busy.';
        const envelope = { status: 'error', code: 'GATEWAY_BUSY', message, retryable: true, requestId: id };
        assert.deepEqual(JSON.parse(body), envelope);
      }
      assert.ok(
        answers.some(({ status }) => status === 200),
        'some calls are always let in',
      );
      const refusing = burst();
      const paths = ['/health', '/ready', '/api/resources', '/.well-known/agent-commerce'];
      const others = await Promise.all(paths.map((path) => fetch(`${testbed.gateway.url}${path}`)));
      const operator = await testbed.gateway.operator('/api/receipts');
      assert.deepEqual(
        [...others, operator].map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      await refusing;
      assert.deepEqual([...new Set(clients.map(({ opened }) => opened))], [1], 'every connection is kept');

      loop = IDLE;
      testbed.backend.release();
      const finished = await Promise.all(held);
      assert.deepEqual([...new Set(finished.map(({ status }) => status))], [200], 'calls in flight are finished');
      await burstUntil((refused) => refused === 0);
    },
  );

  attack('D8', 'refusals are logged in summary lines, not one each', async () => {
    const isRefusalLine = (line: string): boolean => line.includes('calls were refused');
    const deadline = performance.now() + DEADLINE_MS;
    while (!testbed.gateway.logLines.some(isRefusalLine) && performance.now() < deadline) await burst();
    const lines = testbed.gateway.logLines.filter(isRefusalLine);
    const { shed } = JSON.parse(lines[0] ?? '{}') as { readonly shed?: { readonly overload: number } };
    assert.ok((shed?.overload ?? 0) > 0, 'the line says how many');
    assert.equal(testbed.gateway.logLines.filter((line) => line.includes('"status":503')).length, 0);
    assert.ok(lines.length < 10, `${lines.length} lines`);
  });

  attack('D2', 'a refused call is not read, and its connection serves the next one', async () => {
    const full = await openTestbed({ overrides: { limits: { maxInFlight: 1 } } });
    const { hostname, port } = new URL(full.gateway.url);
    const client = new WireClient(hostname, Number(port));
    try {
      const arrived = full.backend.nextRequest('/held');
      const held = full.gateway.invoke('free_held');
      await arrived;
      const whole = postOf('/api/resources/cities/invoke', '{}');
      const refused = await ask(client, whole.subarray(0, -2));
      assert.equal(refused.status, 503);
      full.backend.release();
      assert.equal((await held).status, 200);
      const next = await ask(client, Buffer.concat([whole.subarray(-2), whole]));
      assert.deepEqual([next.status, client.opened], [200, 1]);
      // The gateway does not wait for a body of unknown length.
      full.backend.hold();
      const again = full.backend.nextRequest('/held');
      const second = full.gateway.invoke('free_held');
      await again;
      const head = 'POST /api/resources/cities/invoke HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n';
      const chunked = await ask(client, Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`));
      assert.equal(chunked.status, 503);
      assert.match(chunked.head, /\r\nconnection: close/i);
      full.backend.release();
      await second;
    } finally {
      client.close();
      await full.close();
    }
  });
});
