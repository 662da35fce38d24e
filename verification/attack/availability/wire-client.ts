/** A small HTTP client for many calls on few sockets. */

import { connect, type Socket } from 'node:net';

/** One answer. */
export interface WireAnswer {
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
export class WireClient {
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
export function postOf(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Buffer {
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
