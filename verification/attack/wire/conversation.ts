/** A raw connection to a gateway. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

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

/** One HTTP/1.1 answer as it was on the wire. */
export interface WireAnswer {
  readonly status: number;
  /** Lower-case names; of a repeated name every value. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Buffer;
}

/** The answers that were read from a connection. */
export interface WireReading {
  /** Final answers in order; 1xx are only counted. */
  readonly answers: readonly WireAnswer[];
  readonly interim: readonly number[];
  /** Bytes behind the last complete answer; none when the peer kept the framing. */
  readonly rest: Buffer;
}

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [\t\x20-\x7e]*$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Reads answers strictly by RFC 9112, without repairs: bytes that do not fit stay in `rest`.
 * `bodiless`: positions of the answers to HEAD. `ended`: whether the connection is closed, which
 * ends a body without a length.
 */
export function readAnswers(
  bytes: Buffer,
  { ended, bodiless = [] }: { readonly ended: boolean; readonly bodiless?: readonly number[] },
): WireReading {
  const answers: WireAnswer[] = [];
  const interim: number[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf(HEAD_END, at);
    if (end < 0) break;
    const head = readHead(bytes.toString('latin1', at, end));
    if (head === undefined) break;
    const start = end + HEAD_END.length;
    if (head.status < 200) {
      interim.push(head.status);
      at = start;
      continue;
    }
    const empty = head.status === 204 || head.status === 304 || bodiless.includes(answers.length);
    const content = empty ? { body: Buffer.alloc(0), next: start } : readContent(bytes, start, head.headers, ended);
    if (content === undefined) break;
    answers.push({ ...head, body: content.body });
    at = content.next;
  }
  return { answers, interim, rest: bytes.subarray(at) };
}

function readHead(text: string): Omit<WireAnswer, 'body'> | undefined {
  const [line = '', ...fields] = text.split('\r\n');
  const status = STATUS_LINE.exec(line)?.[1];
  if (status === undefined) return undefined;
  const headers = new Map<string, string[]>();
  for (const field of fields) {
    const [, name, value] = FIELD.exec(field) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value]);
  }
  return { status: Number(status), headers };
}

interface Content {
  readonly body: Buffer;
  readonly next: number;
}

/** Undefined while it is not complete, or when its framing is wrong. */
function readContent(
  bytes: Buffer,
  start: number,
  headers: WireAnswer['headers'],
  ended: boolean,
): Content | undefined {
  const lengths = headers.get('content-length');
  const codings = headers.get('transfer-encoding');
  if (codings !== undefined) return codings.join() === 'chunked' && !lengths ? readChunks(bytes, start) : undefined;
  if (lengths === undefined) return ended ? { body: bytes.subarray(start), next: bytes.length } : undefined;
  const [length = ''] = lengths;
  if (lengths.length !== 1 || !/^\d+$/.test(length)) return undefined;
  const next = start + Number(length);
  return next > bytes.length ? undefined : { body: bytes.subarray(start, next), next };
}

function readChunks(bytes: Buffer, start: number): Content | undefined {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const line = bytes.indexOf('\r\n', at);
    const size = line < 0 ? undefined : /^[0-9a-f]+$/i.exec(bytes.toString('latin1', at, line))?.[0];
    if (size === undefined) return undefined;
    const from = line + 2;
    const to = from + Number.parseInt(size, 16);
    if (bytes.toString('latin1', to, to + 2) !== '\r\n') return undefined;
    if (to === from) return { body: Buffer.concat(chunks), next: to + 2 };
    chunks.push(bytes.subarray(from, to));
    at = to + 2;
  }
}

/** Bytes on a fresh connection, and the expected answers. */
export interface FramingCase {
  readonly name: string;
  readonly sends: string;
  /** Sent one byte at a time, each in a packet of its own. */
  readonly byByte?: true;
  /** Statuses of the final answers, in order. */
  readonly answered: readonly number[];
  /** Marks of the calls that reach the backend, in order. Default: none. */
  readonly meant?: readonly string[];
  /** The connection afterwards: `open` means that the next request on it gets its own answer. */
  readonly leaves: 'closed' | 'open';
  /** Positions of the answers to HEAD. */
  readonly bodiless?: readonly number[];
  /** Ends our half after the last byte. */
  readonly finishes?: true;
}

/** The part of a mark that `numbered` replaces by the number of its case. */
const NUMBER = '#000';

/** The mark of a call without a body. */
export const EMPTY = '{}';

/** The body of a call, distinct from all others at the backend. */
export const marked = (mark: string): string => JSON.stringify({ mark: `${mark}${NUMBER}` });

/** The same text with the marks of a case: as long as before. */
export function numbered(text: string, number: number): string {
  return text.replaceAll(NUMBER, `#${String(number).padStart(3, '0')}`);
}

/** A head of these lines. */
export const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;

/** The request line that calls the free echoing resource. */
export const ECHO = 'POST /api/resources/free_echo/invoke HTTP/1.1';
export const HOST = 'Host: shop';
export const JSON_TYPE = 'Content-Type: application/json';

/** A call whose head has `lines` beside the usual ones, and behind it exactly `body`. */
export const echo = (lines: readonly string[], body = '', id = 'free_echo'): string =>
  head(ECHO.replace('free_echo', id), HOST, JSON_TYPE, ...lines) + body;

/** A valid call. */
export const good = (mark: string): string => echo([`Content-Length: ${marked(mark).length}`], marked(mark));

/** A body of one chunk. */
export const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** A whole call inside a body: it must never be served as a call. */
export const SMUGGLED = good('smuggled');

/** A channel that carries an input to the echoing resource. */
export interface Entrance {
  readonly name: string;
  /** Levels of JSON around the input. */
  readonly levels: number;
  /** A whole body around the input, which may be any text. */
  around(input: string | Buffer): Buffer;
  /** A request with a body; `lines` instead of the usual content type. */
  request(body: Buffer, lines?: readonly string[]): Buffer;
}

const USUAL = ['Content-Type: application/json'];

const entrance = (name: string, path: string, before: string, after: string, own: readonly string[]): Entrance => ({
  name,
  levels: [...before].reduce((open, char) => open + ('[{'.includes(char) ? 1 : '}]'.includes(char) ? -1 : 0), 0),
  around: (input) => Buffer.concat([Buffer.from(before), Buffer.from(input), Buffer.from(after)]),
  request: (body, lines = USUAL) => {
    const fields = [HOST, `Content-Length: ${body.length}`, ...own, ...lines];
    return Buffer.concat([Buffer.from(head(`POST ${path} HTTP/1.1`, ...fields), 'latin1'), body]);
  },
});

const TOOL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free_echo","arguments":';
const MESSAGE =
  '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",' +
  '"parts":[{"mediaType":"application/json","data":{"resource":"free_echo","input":';

/** Every channel that takes an input. */
export const ENTRANCES: readonly Entrance[] = [
  entrance('HTTP', '/api/resources/free_echo/invoke', '', '', []),
  entrance('MCP', '/mcp', TOOL, '}}', []),
  entrance('A2A', '/a2a', MESSAGE, '}}]}}}', ['A2A-Version: 1.0']),
];

/** Whether a channel refused a request, in its own format. */
export function isRefusal({ status, body }: WireAnswer): boolean {
  if (status >= 400) return true;
  const document = JSON.parse(body.toString()) as { readonly error?: unknown };
  return document.error !== undefined;
}
