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
