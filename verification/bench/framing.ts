/**
 * Finds the messages of HTTP/1.1 in what a socket received: the little of the protocol that the
 * load generator and the servers around the contestants need, at a microsecond a message.
 */

import { createServer } from 'node:net';

const HEAD_END = '\r\n\r\n';
const LAST_CHUNK = '\r\n0\r\n';
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
const CLOSES = /\r\nconnection: *close/i;

/** A whole message, and where its parts lie. */
export interface Message {
  /** Start line and header lines, without the empty line. */
  readonly head: string;
  /** First byte of the body. */
  readonly bodyAt: number;
  /** One past the last byte of the message. */
  readonly end: number;
}

/** Whether the sender ends the connection behind this message. */
export function closes(head: string): boolean {
  return CLOSES.test(head);
}

/** The value of a header, as it came; undefined without it. `name` in lower case. */
export function headerOf(head: string, name: string): string | undefined {
  const at = head.toLowerCase().indexOf(`\r\n${name}:`);
  if (at === -1) return undefined;
  const from = at + name.length + 3;
  const end = head.indexOf('\r\n', from);
  return head.slice(from, end === -1 ? undefined : end).trim();
}

/** Takes what a socket receives and gives whole messages, in order. */
export class Framer {
  #chunks: Buffer[] = [];
  #size = 0;
  /** With fewer bytes the message cannot be whole: large bodies are joined once. */
  #wanted = 0;

  /** @param give gets each whole message and the bytes it lies in */
  take(chunk: Buffer, give: (message: Message, bytes: Buffer) => void): void {
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size < this.#wanted) return;
    // Most messages are one chunk, which is read without a copy.
    let bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#size);
    this.#wanted = 0;
    while (bytes.length > 0) {
      const found = this.#messageIn(bytes);
      if (found === undefined) break;
      give(found, bytes);
      bytes = bytes.subarray(found.end);
    }
    this.#chunks = bytes.length === 0 ? [] : [bytes];
    this.#size = bytes.length;
  }

  /**
   * The message at the beginning of `bytes`; undefined while it is not whole. A body has a length
   * or is chunked; behind its last chunk there may be trailers.
   */
  #messageIn(bytes: Buffer): Message | undefined {
    const headEnd = bytes.indexOf(HEAD_END);
    if (headEnd === -1) return undefined;
    const head = bytes.toString('latin1', 0, headEnd);
    const bodyAt = headEnd + HEAD_END.length;
    const length = LENGTH.exec(head)?.[1];
    if (length !== undefined) {
      const end = bodyAt + Number(length);
      if (bytes.length >= end) return { head, bodyAt, end };
      this.#wanted = end;
      return undefined;
    }
    if (!CHUNKED.test(head)) return { head, bodyAt, end: bodyAt };
    // The line break before the last chunk of an empty body is that of the head.
    const last = bytes.indexOf(LAST_CHUNK, headEnd + 2);
    const end = last === -1 ? -1 : bytes.indexOf(HEAD_END, last + LAST_CHUNK.length - 2);
    return end === -1 ? undefined : { head, bodyAt, end: end + HEAD_END.length };
  }
}

/** Answers one request with a status and a JSON text. */
type Answering = (message: Message, bytes: Buffer) => { readonly status: number; readonly json: string };

/** Listens on 127.0.0.1 until the process ends; no connection is closed for being idle. */
export function serveRaw(port: number, answer: Answering): void {
  const server = createServer({ noDelay: true }, (socket) => {
    const framer = new Framer();
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) =>
      framer.take(chunk, (message, bytes) => {
        const { status, json } = answer(message, bytes);
        const length = Buffer.byteLength(json);
        socket.write(
          `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${json}`,
        );
      }),
    );
  });
  server.listen(port, '127.0.0.1', 4_096);
}
