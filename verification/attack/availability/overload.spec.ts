import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack } from '../catalogue.ts';
import { type Conversation, converse, HOST, head, JSON_TYPE, type WireAnswer } from '../wire/conversation.ts';

/** Calls at once: far more than there are slots. */
const BURST = 400;
const SLOTS = 20;
/** Calls that wait less than a second for their turn even on a slow machine. */
const FEW = 40;
const DEADLINE_MS = 20_000;
const CALL = head('POST /api/resources/cities/invoke HTTP/1.1', HOST, JSON_TYPE, 'Content-Length: 2').concat('{}');

/** One connection that asks one question at a time. */
interface Client extends Pick<Conversation, 'ended' | 'close'> {
  ask(request: string): Promise<WireAnswer>;
}

async function openClient(url: string): Promise<Client> {
  const conversation = await converse(url);
  let asked = 0;
  return {
    ...conversation,
    async ask(request) {
      conversation.send(request);
      asked += 1;
      const { answers } = await conversation.until(asked, DEADLINE_MS);
      return answers[asked - 1] ?? assert.fail('no answer');
    },
  };
}

describe('a flood', () => {
  let testbed: Testbed;
  let clients: readonly Client[];
  before(async () => {
    testbed = await openTestbed({ overrides: { limits: { maxInFlight: SLOTS } } });
    clients = await Promise.all(Array.from({ length: BURST }, () => openClient(testbed.gateway.url)));
  });
  after(async () => {
    for (const client of clients) client.close();
    await testbed.close();
  });

  const burst = (count = BURST): Promise<readonly WireAnswer[]> =>
    Promise.all(clients.slice(0, count).map((client) => client.ask(CALL)));
  /** Calls in flight that wait for the backend. */
  const hold = async (count: number): Promise<readonly Promise<Response>[]> => {
    testbed.backend.hold();
    const held: Promise<Response>[] = [];
    while (held.length < count) {
      const arrived = testbed.backend.nextRequest('/held');
      held.push(testbed.gateway.invoke('free_held'));
      await arrived;
    }
    return held;
  };
  const release = async (held: readonly Promise<Response>[]): Promise<void> => {
    testbed.backend.release();
    const finished = await Promise.all(held);
    assert.deepEqual([...new Set(finished.map(({ status }) => status))], [200], 'calls in flight are finished');
  };

  attack('D2', 'none of a large burst is refused while calls end: they wait for their turn', async () => {
    const held = await hold(SLOTS - 2);
    const answers = await burst(FEW);
    await release(held);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  attack('D2', 'calls that find no slot in time are refused, and all others are served meanwhile', async () => {
    const held = await hold(SLOTS);
    const refusing = burst();
    const paths = ['/health', '/ready', '/api/resources', '/.well-known/agent-commerce'];
    const others = await Promise.all(paths.map((path) => fetch(`${testbed.gateway.url}${path}`)));
    const operator = await testbed.gateway.operator('/api/receipts');
    assert.deepEqual(
      [...others, operator].map(({ status }) => status),
      [200, 200, 200, 200, 200],
    );
    for (const { status, headers, body } of await refusing) {
      assert.deepEqual([status, headers.get('retry-after'), headers.get('connection')], [503, ['1'], ['keep-alive']]);
      const [requestId] = headers.get('x-request-id') ?? [];
      const envelope = { status: 'error', code: 'GATEWAY_BUSY', message: 'The gateway is busy.', retryable: true };
      assert.deepEqual(JSON.parse(body.toString()), { ...envelope, requestId });
    }
    assert.ok(!clients.some((client) => client.ended()), 'every connection is kept');
    await release(held);
    const answers = await burst(FEW);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  for (const [title, line] of [
    ['404s', 'GET /api/receipts/x'],
    ['405s', 'DELETE /api/resources/cities/invoke'],
    ['documents', 'GET /api/resources'],
  ] as const)
    attack('D2', `a call does not wait for all of a burst of ${title} that came before it`, async () => {
      const [caller, ...crowd] = clients;
      assert.ok(caller);
      let answered = 0;
      const crowded = crowd.map((client) => client.ask(head(`${line} HTTP/1.1`, HOST)).then(() => (answered += 1)));
      const { status } = await caller.ask(CALL);
      const before = answered;
      await Promise.all(crowded);
      assert.equal(status, 200);
      assert.ok(before < crowd.length / 2, `${before} of ${crowd.length} were answered before the call`);
    });
});
