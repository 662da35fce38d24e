import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { framesOf } from '../../src/cli/events.ts';
import type { CommerceEvent } from '../../src/events/event.ts';
import { event } from '../payments/ledger/samples.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { type RunningCommand, startAcg } from './acg.ts';
import { type OperatorBed, openOperatorBed } from './operator-bed.ts';
import { openShell } from './shell.ts';

const STREAM =
  ': connected\n\nretry: 2000\n\nid: evt_1-0\ndata: {"a":"ü"}\n\n: gap\n\ndata: one\ndata:two\n\ndata: unfinished';
const FRAMES = [
  { kind: 'comment', text: 'connected' },
  { kind: 'retry', retryMs: 2_000 },
  { kind: 'event', id: 'evt_1-0', data: '{"a":"ü"}' },
  { kind: 'comment', text: 'gap' },
  { kind: 'event', id: 'evt_1-0', data: 'one\ntwo' },
];

async function read(chunks: readonly Uint8Array[]): Promise<readonly object[]> {
  async function* stream() {
    yield* chunks;
  }
  const frames: object[] = [];
  for await (const frame of framesOf(stream())) frames.push(frame);
  return frames;
}

describe('the frames of an event stream', () => {
  for (const [name, end] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const)
    it(`with ${name} are the same however they are cut into chunks`, async () => {
      const bytes = Buffer.from(STREAM.replaceAll('\n', end));
      for (const size of [1, 2, 3, 7, bytes.length]) {
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        assert.deepEqual(await read(chunks), FRAMES, `chunks of ${size}`);
      }
    });

  it('end with an error where a line has none', async () => {
    await assert.rejects(read([Buffer.alloc(1_048_576, 'a'), Buffer.from('a')]), /a line without an end/);
  });
});

/** The least that a store keeps. */
const RING = 100;
const TOKEN = { ACG_ADMIN_TOKEN: OPERATOR_TOKEN };
const ends = new AsyncDisposableStack();
const shell = openShell(ends);
let bed: OperatorBed;
before(async () => {
  bed = await openOperatorBed(ends, { storage: { eventsMaxLength: RING } });
});
after(() => ends.disposeAsync());

/** Appends events of these requests, one each. */
async function happen(names: readonly string[], type: CommerceEvent['type'] = 'backend.called'): Promise<void> {
  await bed.gateway.store.feed.append(names.map((name) => event(type, name, { data: { status: 200 } })));
}

const named = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index}`);
const requestsIn = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as CommerceEvent).requestId);

describe('acg events', () => {
  it('prints the document of the API, newest first, and says that there is more', async () => {
    await happen(named('list', 3));
    await happen(['rejected'], 'payment.rejected');
    const { code, lines, errors } = await shell.run(bed.folder, ['events', '--limit', '2']);
    assert.equal(code, 0, errors);
    const { events, nextCursor } = JSON.parse(lines.join('\n'));
    assert.deepEqual(
      events.map(({ requestId }: CommerceEvent) => requestId),
      ['rejected', 'list-2'],
    );
    assert.equal(nextCursor, events[1].id);
    assert.equal(errors, '2 events, and there are older ones: --limit 4 shows more\n');
  });

  it('has the filters of the API, and refuses a type that there is not', async () => {
    const [byType, byRequest] = await Promise.all([
      shell.run(bed.folder, ['events', '--type', 'payment.rejected', '--csv']),
      shell.run(bed.folder, ['events', '--request-id', 'list-1', '--resource', 'market_report', '--csv']),
    ]);
    assert.equal(byType.lines.length, 2);
    assert.match(byType.lines[1] ?? '', /,payment\.rejected,.*"\{""status"":200\}"\r$/);
    assert.match(byRequest.lines[1] ?? '', /,list-1,/);
    const { code, errors } = await shell.run(bed.folder, ['events', '--type', 'payment.setled']);
    assert.deepEqual([code, errors], [64, '--type has no payment.setled; did you mean payment.settled?\n']);
  });

  it('is a table on a terminal', async () => {
    const { lines } = await shell.run(bed.folder, ['events', '--limit', '1'], { isTerminal: true });
    assert.deepEqual(
      lines.map((line) => line.replaceAll(/ {2,}/g, '|')),
      [
        'AT|TYPE|RESOURCE|BY|REQUEST|FACTS',
        '2026-01-02T03:04:05.678Z|payment.rejected|market_report|rejected|status=200',
      ],
    );
  });
});

describe('acg events --follow', () => {
  /** Follows over a connection that can be cut, until the end of the test. */
  async function follow(t: TestContext, ...args: readonly string[]) {
    const own = new AsyncDisposableStack();
    t.after(() => own.disposeAsync());
    const { port } = new URL(bed.gateway.url);
    const line = own.adopt(await startTcpProxy({ host: '127.0.0.1', port: Number(port) }), ({ stop }) => stop());
    const url = `http://127.0.0.1:${line.port}`;
    const command = startAcg(bed.folder, ['events', '--follow', '--url', url, ...args], TOKEN);
    t.after(() => command.child.kill('SIGKILL'));
    return { line, command };
  }
  const interrupted = async ({ child, ended }: RunningCommand) => {
    child.kill('SIGINT');
    return ended;
  };
  const has = (request: string) => (text: string) => text.includes(`"${request}"`);

  it('prints what comes, of the past what is asked for, and ends with 0 on Ctrl-C', async (t) => {
    await happen(named('past', 3));
    const { command } = await follow(t, '--limit', '2');
    await command.until(has('past-2'), 'the past');
    await happen(named('new', 2));
    await command.until(has('new-1'), 'what is new');
    const { code, errors } = await interrupted(command);
    assert.deepEqual([code, errors], [0, '']);
    assert.deepEqual(requestsIn(command.text()), ['past-1', 'past-2', 'new-0', 'new-1']);
  });

  it('leaves out what its filters do', async (t) => {
    await happen(['before']);
    const { command } = await follow(t, '--type', 'payment.rejected', '--limit', '1');
    await command.until(has('rejected'), 'the past');
    await happen(named('called', 3));
    await happen(['wanted'], 'payment.rejected');
    await command.until(has('wanted'), 'the rejection');
    assert.deepEqual(requestsIn(command.text()), ['rejected', 'wanted']);
  });

  it('goes on behind an outage without losing or repeating an event', async (t) => {
    await happen(['start']);
    const { line, command } = await follow(t, '--limit', '1');
    await command.until(has('start'), 'the past');
    await happen(named('first', 2));
    await command.until(has('first-1'), 'the first ones');
    line.cut();
    await command.until((_text, errors) => errors.includes('connecting again'), 'a note of the outage');
    await happen(named('missed', 5));
    line.mend();
    await command.until(has('missed-4'), 'what came meanwhile');
    await happen(['last']);
    await command.until(has('last'), 'what came after it');
    const { errors } = await interrupted(command);
    assert.deepEqual(requestsIn(command.text()), ['start', ...named('first', 2), ...named('missed', 5), 'last']);
    assert.deepEqual(errors.split('\n'), ['it closed the connection; connecting again', 'connected again', '']);
  });

  it('says where events are missing', async (t) => {
    await happen(['start']);
    const { line, command } = await follow(t, '--limit', '1');
    await command.until(has('start'), 'the past');
    await happen(['streamed']);
    await command.until(has('streamed'), 'the stream');
    line.cut();
    await command.until((_text, errors) => errors.includes('connecting again'), 'a note of the outage');
    await happen(named('many', 2 * RING));
    line.mend();
    await command.until(has(`many-${2 * RING - 1}`), 'the newest');
    const { errors } = await interrupted(command);
    assert.match(errors, /^gap: the gateway no longer has all events after evt_\d+-\d+; some are missing here$/m);
    assert.deepEqual(requestsIn(command.text()), ['start', 'streamed', ...named('many', 2 * RING).slice(-RING)]);
  });

  it('ends with 0 when its reader has enough', async (t) => {
    await happen(['start']);
    const { command } = await follow(t, '--limit', '1');
    await command.until(has('start'), 'the past');
    command.child.stdout?.destroy();
    await happen(['unread']);
    // The first write finds that the pipe is closed.
    assert.equal((await command.ended).code, 0);
  });

  it('one line and exit code 1 with a wrong token', async () => {
    const { url } = bed.gateway;
    const wrong = await shell.run(bed.folder, ['events', '--follow', '--url', url], {
      env: { ADMIN_TOKEN: 'wrong' },
    });
    assert.deepEqual([wrong.code, wrong.errors], [1, `${url} refuses the operator token of ADMIN_TOKEN\n`]);
  });

  it('ends with 1 when its token is taken away', async (t) => {
    await using own = new AsyncDisposableStack();
    const { gateway, folder } = await openOperatorBed(own);
    await gateway.store.feed.append([event('backend.called', 'start')]);
    const command = startAcg(folder, ['events', '--follow', '--limit', '1']);
    t.after(() => command.child.kill('SIGKILL'));
    await command.until(has('start'), 'the past');
    await gateway.store.feed.append([event('backend.called', 'streamed')]);
    await command.until(has('streamed'), 'the stream');
    gateway.reload({ server: { adminToken: 'a-token-that-came-after-the-first' } });
    const { code, errors } = await command.ended;
    assert.equal(code, 1);
    assert.match(errors, /refuses the operator token of server\.adminToken in config\.yaml\n$/);
  });
});
