/** Sends request lines byte for byte over a few connections, each request after the last answer. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { readAnswers } from '../attack/wire/conversation.ts';
import { CASE_HEADER } from './merchant.ts';

/** One request, as it goes on the wire. */
export interface Case {
  readonly id: number;
  readonly method: string;
  /** Each character is one byte. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
}

/** What a request was answered with. */
export interface Answer {
  /** 0: the connection ended without an answer. */
  readonly status: number;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Buffer;
}

/** An answer that takes longer counts as none. */
const PATIENCE_MS = 20_000;

/** Sends all cases to a port of loopback; the answers by the id of the case. */
export async function sendAll(
  port: number,
  cases: readonly Case[],
  connections = 6,
): Promise<ReadonlyMap<number, Answer>> {
  const answers = new Map<number, Answer>();
  const queue = cases.values();
  await Promise.all(Array.from({ length: connections }, () => sendInTurn(port, queue, answers)));
  return answers;
}

async function sendInTurn(port: number, queue: Iterable<Case>, answers: Map<number, Answer>): Promise<void> {
  let connection: Connection | undefined;
  for (const one of queue) {
    if (connection === undefined || !connection.open()) connection = await openConnection(port);
    answers.set(one.id, await connection.ask(one));
  }
  connection?.close();
}

interface Connection {
  open(): boolean;
  ask(one: Case): Promise<Answer>;
  close(): void;
}

async function openConnection(port: number): Promise<Connection> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true).setTimeout(PATIENCE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  return {
    open: () => socket.writable && !socket.readableEnded,
    ask: (one) => ask(socket, one),
    close: () => void socket.destroy(),
  };
}

async function ask(socket: Socket, one: Case): Promise<Answer> {
  const answer = answerOf(socket, one.method === 'HEAD');
  socket.write(bytesOf(one));
  return answer;
}

function answerOf(socket: Socket, bodiless: boolean): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  let bytes: Buffer = Buffer.alloc(0);
  const read = (ended: boolean): void => {
    const [answer] = readAnswers(bytes, { ended, bodiless: bodiless ? [0] : [] }).answers;
    if (answer === undefined && !ended) return;
    socket.off('data', onData).off('end', onEnd).off('close', onEnd);
    const closing = answer?.headers.get('connection')?.some((value) => /close/i.test(value)) ?? true;
    if (closing) socket.destroy();
    resolve({
      status: answer?.status ?? 0,
      headers: answer?.headers ?? new Map(),
      body: answer?.body ?? Buffer.alloc(0),
    });
  };
  const onData = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    read(false);
  };
  const onEnd = (): void => read(true);
  socket.on('data', onData).on('end', onEnd).on('close', onEnd);
  if (socket.destroyed) read(true);
  return promise;
}

function bytesOf({ id, method, target, headers = {}, body }: Case): Buffer {
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'Host: shop.test',
    `${CASE_HEADER}: ${id}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : [`Content-Type: ${body.type}`]),
    ...(body !== undefined || WITH_LENGTH.has(method) ? [`Content-Length: ${body?.bytes.length ?? 0}`] : []),
  ];
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return body === undefined ? head : Buffer.concat([head, body.bytes]);
}

const WITH_LENGTH: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'PROPFIND']);
