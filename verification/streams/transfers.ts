/** Long transfers through the passthrough: how fast, and what they leave in memory. */

import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { residentBytes } from '../bench/meter.ts';
import type { Row } from './row.ts';

const GIB = 1_073_741_824;
const MIB = 1_048_576;
const CHUNK = Buffer.alloc(65_536, 0x62);
/** What a transfer may leave in memory once the process is warm (the goal), bytes. */
const MOST_GROWTH_BYTES = 20 * MIB;
const STALLED_READERS = 20;

/** A gateway that is measured. */
interface Measured {
  readonly baseUrl: string;
  readonly pid: number;
}

/** One transfer of `bytes` warms up, the next is measured, in each direction. */
export async function transferRows(gateway: Measured, bytes = GIB): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const [what, transfer] of [
    ['down', download],
    ['up', upload],
  ] as const) {
    await transfer(gateway, bytes);
    const before = residentBytes(gateway.pid);
    const peak = watchPeak(gateway.pid);
    const startedAt = performance.now();
    const moved = await transfer(gateway, bytes);
    const seconds = (performance.now() - startedAt) / 1_000;
    const most = peak.stop() - before;
    const growth = residentBytes(gateway.pid) - before;
    rows.push({
      what: `${mib(bytes)} ${what}, the second of two`,
      found: `${moved === bytes ? 'whole' : `${moved} bytes`}, ${seconds.toFixed(1)} s, memory ${signed(growth)}, ${signed(most)} at its most`,
      goal: `whole, memory +${mib(MOST_GROWTH_BYTES)} at most`,
      met: moved === bytes && growth < MOST_GROWTH_BYTES,
    });
  }
  return rows;
}

/** Readers that stop: the gateway makes the backend wait and does not keep what they leave. */
export async function slowReaderRow(gateway: Measured): Promise<Row> {
  const before = residentBytes(gateway.pid);
  const responses = await Promise.all(
    Array.from({ length: STALLED_READERS }, () => open(gateway, `/down?bytes=${64 * MIB}`)),
  );
  for (const response of responses) response.pause();
  await delay(3_000);
  const growth = residentBytes(gateway.pid) - before;
  const sizes = await Promise.all(responses.map(readAll));
  const whole = sizes.filter((size) => size === 64 * MIB).length;
  return {
    what: `${STALLED_READERS} readers of 64 MiB that stop for 3 s`,
    found: `${whole} whole, memory ${signed(growth)}`,
    goal: `${STALLED_READERS} whole, memory +64 MiB at most`,
    met: whole === STALLED_READERS && growth < 64 * MIB,
  };
}

/** A backend that sends little by little, longer than the limits of the gateway's own routes. */
export async function slowBackendRow(gateway: Measured, seconds: number): Promise<Row> {
  const chunks = seconds * 2;
  const size = await readAll(await open(gateway, `/down?bytes=${chunks * CHUNK.length}&everyMs=500`));
  const whole = size === chunks * CHUNK.length;
  return {
    what: `a backend that sends 64 KiB every 0.5 s for ${seconds} s`,
    found: whole ? 'whole' : `${size} bytes`,
    goal: 'whole',
    met: whole,
  };
}

/** Server-sent events arrive when they are sent. */
export async function eventsRow(gateway: Measured, seconds: number): Promise<Row> {
  const response = await open(gateway, `/events?seconds=${seconds}`);
  const delays: number[] = [];
  response.setEncoding('utf8').on('data', (text: string) => {
    for (const [, sentAt] of text.matchAll(/data: (\d+)/g)) delays.push(Date.now() - Number(sentAt));
  });
  await once(response, 'end');
  const latest = Math.max(...delays);
  return {
    what: `server-sent events for ${seconds} s`,
    found: `${delays.length} events, the latest after ${latest} ms`,
    goal: 'each within 100 ms',
    met: delays.length >= seconds * 4 && latest <= 100,
  };
}

async function download(gateway: Measured, bytes: number): Promise<number> {
  return readAll(await open(gateway, `/down?bytes=${bytes}`));
}

async function upload({ baseUrl }: Measured, bytes: number): Promise<number> {
  const request = http.request(`${baseUrl}/up`, { method: 'PUT', headers: { 'content-length': bytes } });
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
  for (let left = bytes; left > 0; left -= CHUNK.length)
    if (!request.write(left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left))) await once(request, 'drain');
  request.end();
  const [response] = await answered;
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return Number(text);
}

/** The answer to a GET, with its head. */
async function open({ baseUrl }: Measured, path: string): Promise<http.IncomingMessage> {
  const request = http.get(`${baseUrl}${path}`, { agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return response;
}

async function readAll(response: http.IncomingMessage): Promise<number> {
  let size = 0;
  for await (const chunk of response) size += (chunk as Buffer).length;
  return size;
}

function watchPeak(pid: number): { stop(): number } {
  let peak = residentBytes(pid);
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(pid));
  }, 50);
  return {
    stop() {
      clearInterval(timer);
      return Math.max(peak, residentBytes(pid));
    },
  };
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

function signed(bytes: number): string {
  return `${bytes < 0 ? '-' : '+'}${mib(Math.abs(bytes))}`;
}

/** Handshakes at a time. */
const BATCH = 50;
/** Until all of them are closed, from the begin of the drain, milliseconds. */
const MOST_MS = 2_000;

/** Opens `count` WebSockets, sends a message over each, drains, and sees how they end. */
export async function webSocketRows(
  gateway: Measured & { readonly drain: () => Promise<unknown> },
  count: number,
): Promise<readonly Row[]> {
  const before = residentBytes(gateway.pid);
  const sockets: WebSocket[] = [];
  for (let opened = 0; opened < count; opened += BATCH)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(BATCH, count - opened) }, () => openSocket(gateway.baseUrl)),
      )),
    );
  const startedAt = performance.now();
  const echoes = await Promise.all(sockets.map((socket, index) => echo(socket, `message ${index}`)));
  const echoMs = performance.now() - startedAt;
  const right = echoes.filter((text, index) => text === `message ${index}`).length;
  const growth = residentBytes(gateway.pid) - before;
  const drainedAt = performance.now();
  const closed = Promise.all(sockets.map((socket) => once(socket, 'close'))).then(() => performance.now());
  await gateway.drain();
  const ms = (await closed) - drainedAt;
  return [
    {
      what: `${count} WebSockets open at once`,
      found: `${right} echoes in ${echoMs.toFixed(0)} ms, memory +${mib(growth)}, ${(growth / count / 1_024).toFixed(0)} KiB each`,
      goal: `${count} echoes`,
      met: right === count,
    },
    {
      what: 'their end when the gateway drains',
      found: `all within ${ms.toFixed(0)} ms`,
      goal: `all within ${MOST_MS} ms`,
      met: ms <= MOST_MS,
    },
  ];
}

function openSocket(baseUrl: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/chat`);
    socket.addEventListener('open', () => resolve(socket), { once: true });
    socket.addEventListener('error', () => reject(new Error('a WebSocket was refused')), { once: true });
  });
}

function echo(socket: WebSocket, text: string): Promise<string> {
  return new Promise((resolve) => {
    socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true });
    socket.send(text);
  });
}
