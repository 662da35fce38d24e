import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack } from '../catalogue.ts';

/** Calls at once: far more than there are slots. */
const BURST = 400;
const SLOTS = 20;
/** Calls that wait less than a second for their turn even on a slow machine. */
const FEW = 40;
const DEADLINE_MS = 20_000;

describe('a flood', () => {
  let testbed: Testbed;
  let clients: readonly WireClient[];
  before(async () => {
    testbed = await openTestbed({ overrides: { limits: { maxInFlight: SLOTS } } });
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
  const burst = (count = BURST): Promise<readonly WireAnswer[]> => {
    const request = postOf('/api/resources/cities/invoke', '{}');
    return Promise.all(clients.slice(0, count).map((client) => ask(client, request)));
  };
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
    for (const { status, head, body } of await refusing) {
      assert.equal(status, 503, head);
      const id = /\r\nx-request-id: (\S+)/.exec(head)?.[1];
      assert.match(head, /\r\nretry-after: 1\b/);
      assert.doesNotMatch(head, /\r\nconnection: close/i);
      const message = 'The gateway is busy.';
      const envelope = { status: 'error', code: 'GATEWAY_BUSY', message, retryable: true, requestId: id };
      assert.deepEqual(JSON.parse(body), envelope);
    }
    assert.deepEqual([...new Set(clients.map(({ opened }) => opened))], [1], 'every connection is kept');
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
      const burstOf = Buffer.from(`${line} HTTP/1.1\r\nhost: x\r\n\r\n`);
      const crowded = crowd.map((client) => ask(client, burstOf).then(() => (answered += 1)));
      const { status } = await ask(caller, postOf('/api/resources/cities/invoke', '{}'));
      const before = answered;
      await Promise.all(crowded);
      assert.equal(status, 200);
      assert.ok(before < crowd.length / 2, `${before} of ${crowd.length} were answered before the call`);
    });

  attack('D2', 'a call that waits begins as soon as a slot is free', async () => {
    const held = await hold(SLOTS);
    const [client] = clients;
    assert.ok(client);
    const waiting = ask(client, postOf('/api/resources/cities/invoke', '{}'));
    // Requests on one listener are taken in the order in which they came.
    await fetch(`${testbed.gateway.url}/health`);
    await release(held);
    assert.equal((await waiting).status, 200);
  });

  attack('D8', 'refusals are logged in summary lines, not one each', async () => {
    const isRefusalLine = (line: string): boolean => line.includes('calls were refused');
    const deadline = performance.now() + DEADLINE_MS;
    while (!testbed.gateway.logLines.some(isRefusalLine) && performance.now() < deadline) await delay(20);
    const lines = testbed.gateway.logLines.filter(isRefusalLine);
    const { shed } = JSON.parse(lines[0] ?? '{}') as { readonly shed?: { readonly in_flight: number } };
    assert.ok((shed?.in_flight ?? 0) > 0, 'the line says how many');
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

/** One answer. */
interface WireAnswer {
  readonly status: number;
  /** The header block, as received. */
  readonly head: string;
  readonly body: string;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const LENGTH = /\r\ncontent-length: (\d+)/i;

/**
 * One connection that asks one question at a time. Written on the bare socket, because the load
 * generator has to ask three times as often as the gateway can answer, on a core that it shares. It
 * understands answers that declare their length, which all of them do here.
 */
class WireClient {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | undefined;
  #got: Buffer = Buffer.alloc(0);
  #onAnswer: ((answer: WireAnswer | Error) => void) | undefined;
  /** Connections opened so far: more than one means that an answer ended the last one. */
  opened = 0;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /** Resolves when connected, so that connecting is not measured. */
  connected(): Promise<void> {
    const socket = this.#socket ?? this.#open();
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('close', () => reject(new Error('no connection')));
    });
  }

  /** Sends the request and calls back once, with its answer or the error of the connection. */
  ask(request: Buffer, onAnswer: (answer: WireAnswer | Error) => void): void {
    this.#onAnswer = onAnswer;
    this.#socket ??= this.#open();
    this.#socket.write(request);
  }

  close(): void {
    this.#onAnswer = undefined;
    this.#socket?.destroy();
  }

  #open(): Socket {
    this.opened += 1;
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    const gone = (error: Error): void => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#got = Buffer.alloc(0);
      this.#end(error);
    };
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', gone);
    socket.on('close', () => gone(new Error('closed')));
    return socket;
  }

  #take(chunk: Buffer): void {
    this.#got = this.#got.length === 0 ? chunk : Buffer.concat([this.#got, chunk]);
    const end = this.#got.indexOf(HEAD_END);
    if (end === -1) return;
    const head = this.#got.toString('latin1', 0, end);
    const length = Number(LENGTH.exec(head)?.[1] ?? 0);
    const from = end + HEAD_END.length;
    if (this.#got.length < from + length) return;
    const body = this.#got.toString('utf8', from, from + length);
    this.#got = Buffer.alloc(0);
    this.#end({ status: Number(head.slice(9, 12)), head, body });
  }

  #end(answer: WireAnswer | Error): void {
    const notify = this.#onAnswer;
    this.#onAnswer = undefined;
    notify?.(answer);
  }
}

/** A POST of JSON, ready to be written. */
function postOf(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  const fields = Object.entries({
    host: 'gateway',
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': 'attack/1',
    ...headers,
    'content-length': String(Buffer.byteLength(body)),
  });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${head}\r\n${body}`);
}
