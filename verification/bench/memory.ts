/**
 * The suite of memory: what a gateway holds idle and under load, for each connection that is idle,
 * for each subscriber of its events, and whether its heap grows with the calls it has served. Each
 * figure is read once, from a process of its own.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../spec/support/ports.ts';
import { type Ground, groundFor, type Measured, type MeasuringParts } from './ground.ts';
import { type Heap, openHeap } from './heap.ts';
import { treeResidentBytes } from './meter.ts';
import { gatewayInspected, gatewayOverloaded } from './peers/gateway.ts';
import type { Started } from './stage.ts';

const IDLE_MS = 3_000;
const IDLE_CONNECTIONS = 2_000;
const SUBSCRIBERS = 1_000;
const SATURATED_SECONDS = 20;
const SATURATED_CONNECTIONS = 256;
/** Calls before the heap is read first: caches and rings are full. */
const FIRST_CALLS = 30_000;
const CALLS = 300_000;
/** A slow machine ends the calls after this many seconds; the growth is a call's all the same. */
const MOST_SECONDS = 90;
const TURN_SECONDS = 5;
const CONNECTIONS_AT_ONCE = 100;

/** Rows `idle-connection`, `subscriber`, `saturated-rss`, `heap-growth`. */
export async function measureMemory(parts: MeasuringParts): Promise<Measured> {
  await using ends = new AsyncDisposableStack();
  const ground = await groundFor(ends, parts);
  const idle = await held('idle-connection', IDLE_CONNECTIONS, () => 'GET /health HTTP/1.1', ground, parts);
  const subscriber = await held('subscriber', SUBSCRIBERS, subscription, ground, parts);
  const growth = await heapGrowth(ground, parts);
  const saturated = await saturatedBytes(ground, parts.signal);
  return new Map([
    ['idle-connection', { values: [idle] }],
    ['subscriber', { values: [subscriber] }],
    ['heap-growth', { values: [growth] }],
    ['saturated-rss', { values: [saturated / 1_048_576] }],
  ]);
}

function subscription(token: string): string {
  const lines = ['GET /api/events/stream HTTP/1.1', `authorization: Bearer ${token}`, 'accept: text/event-stream'];
  return lines.join('\r\n');
}

/** A gateway whose memory is read, after its first calls. */
interface Inspected {
  readonly started: Started;
  readonly token: string;
  readonly heap: Heap;
}

async function inspected(name: string, ground: Ground, { signal, tell }: MeasuringParts): Promise<Inspected> {
  const token = randomBytes(24).toString('hex');
  const [inspectorPort = 0] = await freePorts(1);
  const started = await ground.stage.start({ ...gatewayInspected(inspectorPort, token), process: name });
  const heap = await openHeap(inspectorPort);
  tell(`${name}: ${FIRST_CALLS} calls`);
  await calls(started, FIRST_CALLS, ground, signal);
  return { started, token, heap };
}

/** Resident memory of each of `count` connections that ask once and stay open, bytes. */
async function held(
  name: string,
  count: number,
  requestOf: (token: string) => string,
  ground: Ground,
  parts: MeasuringParts,
): Promise<number> {
  // A process of its own: what earlier connections gave back would be used again.
  const { started, token, heap } = await inspected(name, ground, parts);
  const resident = async (): Promise<number> => {
    await heap.usedBytes();
    await delay(IDLE_MS, undefined, { signal: parts.signal });
    return treeResidentBytes(started.program.pid);
  };
  const [before, heapBefore] = [await resident(), await heap.usedBytes()];
  const sockets = await openAll(started, count, `${requestOf(token)}\r\nhost: ${hostOf(started)}\r\n\r\n`);
  const each = ((await resident()) - before) / count;
  parts.tell(`${name}: ${(((await heap.usedBytes()) - heapBefore) / count).toFixed(0)} B each of the heap alone`);
  for (const socket of sockets) socket.destroy();
  heap.close();
  return each;
}

/** How much more of the heap is in use after many calls, bytes a call. */
async function heapGrowth(ground: Ground, parts: MeasuringParts): Promise<number> {
  const { started, heap } = await inspected('heap', ground, parts);
  const before = await heap.usedBytes();
  parts.tell(`${CALLS} calls, at most ${MOST_SECONDS} s`);
  const served = await calls(started, CALLS, ground, parts.signal);
  await delay(IDLE_MS, undefined, { signal: parts.signal });
  const growth = ((await heap.usedBytes()) - before) / served;
  heap.close();
  parts.tell(`${served} calls served`);
  return growth;
}

/** The most that a gateway without an inspector holds after each turn. */
async function saturatedBytes({ stage, load }: Ground, signal: AbortSignal): Promise<number> {
  const { origin, contestant, program } = await stage.start(gatewayOverloaded);
  const task = { origin, question: contestant.question, connections: SATURATED_CONNECTIONS, retries: true };
  let most = 0;
  for (let seconds = 0; seconds < SATURATED_SECONDS; seconds += TURN_SECONDS) {
    await load.fire({ ...task, seconds: TURN_SECONDS }, signal);
    most = Math.max(most, treeResidentBytes(program.pid));
  }
  return most;
}

/**
 * Resolves to how many calls were answered: where the machine stands still for a second, some are
 * refused.
 */
async function calls(
  { origin, contestant }: Started,
  wanted: number,
  { load }: Ground,
  signal: AbortSignal,
): Promise<number> {
  const task = { origin, question: contestant.question, seconds: TURN_SECONDS, retries: true };
  let served = 0;
  for (let seconds = 0; seconds < MOST_SECONDS && served < wanted; seconds += TURN_SECONDS)
    served += (await load.fire(task, signal)).requests;
  return served;
}

/** Opens connections that each send a request and stay. @throws Error when one is refused */
async function openAll({ origin }: Started, count: number, request: string): Promise<readonly Socket[]> {
  const port = Number(new URL(origin).port);
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(CONNECTIONS_AT_ONCE, count - sockets.length) }, async () => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.write(request);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      if (!answer.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error(`refused: ${answer.toString()}`);
      socket.resume().on('error', () => {});
      return socket;
    });
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

function hostOf({ origin }: Started): string {
  return new URL(origin).host;
}
