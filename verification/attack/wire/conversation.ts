/** A raw connection to a gateway. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { readAnswers, type WireAnswer, type WireReading } from './http-bytes.ts';

/** A connection that sends any bytes. */
export interface Conversation {
  /** Sends text as Latin-1, so that a character is a byte. */
  send(bytes: string | Buffer): void;
  /** Stops reading: further bytes stay in the buffers of the operating system, then of the peer. */
  deafen(): void;
  /** Ends our half. */
  finish(): void;
  /** Whether the peer has closed. */
  ended(): boolean;
  received(): WireReading;
  /**
   * Resolves to what was received, once there are `count` final answers in all, or the peer has
   * closed, or `limitMs` are over.
   */
  until(count: number, limitMs?: number): Promise<WireReading>;
  /** The same for a text: resolves to everything received, as Latin-1. */
  untilText(text: string, limitMs?: number): Promise<string>;
  close(): void;
  /** Resets it, so that the peer gets an error when it reads or writes. */
  reset(): void;
}

/** Longer than any answer takes. */
const PATIENCE_MS = 5_000;

/** Opens a connection. `bodiless` as in `readAnswers`. */
export async function converse(url: string, bodiless: readonly number[] = []): Promise<Conversation> {
  const socket = await dialled(url);
  const chunks: Buffer[] = [];
  let ended = false;
  let wake = (): void => undefined;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    wake();
  });
  const atEnd = (): void => {
    ended = true;
    wake();
  };
  socket.on('end', atEnd);
  socket.on('close', atEnd);
  const received = (): WireReading => readAnswers(Buffer.concat(chunks), { ended, bodiless });
  const waitFor = async (so: () => boolean, limitMs = PATIENCE_MS): Promise<void> => {
    let late = false;
    const patience = setTimeout(() => {
      late = true;
      wake();
    }, limitMs);
    while (!ended && !late && !so())
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    clearTimeout(patience);
  };
  return {
    send: (bytes) => void (socket.writable && socket.write(bytes, 'latin1')),
    deafen: () => void socket.pause(),
    finish: () => void socket.end(),
    ended: () => ended,
    received,
    async until(count, limitMs) {
      await waitFor(() => received().answers.length >= count, limitMs);
      return received();
    },
    async untilText(text, limitMs) {
      await waitFor(() => Buffer.concat(chunks).includes(text), limitMs);
      return Buffer.concat(chunks).toString('latin1');
    },
    close: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  };
}

async function dialled(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
  // The peer may reset it: a test checks for that.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/**
 * The first final answer to these bytes on a connection of their own. @throws Error when none comes
 */
export async function answerTo(url: string, bytes: string | Buffer): Promise<WireAnswer> {
  const isHead = bytes.toString('latin1').startsWith('HEAD ');
  const conversation = await converse(url, isHead ? [0] : []);
  try {
    conversation.send(bytes);
    const { answers, rest } = await conversation.until(1);
    const [answer] = answers;
    if (answer === undefined) throw new Error(`no answer, but ${JSON.stringify(rest.toString('latin1'))}`);
    return answer;
  } finally {
    conversation.close();
  }
}
