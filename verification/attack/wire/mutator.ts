import type { Chance } from '../../chaos/sim/chance.ts';

/** Texts with a special meaning for some parser. */
const TOKENS: readonly Buffer[] = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  '\0',
  '\x7f',
  '\t',
  '\xff\xfe',
  '\xef\xbb\xbf',
  '\xed\xa0\x80',
  '\r\nTransfer-Encoding: chunked',
  '\r\nContent-Length: 0',
  '\r\nContent-Length: -1',
  '\r\nConnection: close',
  '\r\nExpect: 100-continue',
  '\r\nUpgrade: websocket',
  '\r\nContent-Encoding: gzip',
  '\r\nOrigin: null',
  '\r\n folded',
  '0\r\n\r\n',
  'FFFFFFFF\r\n',
  '%2e%2e%2f',
  '%00',
  '%c0%af',
  '/../',
  '//',
  '?',
  '#',
  '"__proto__":',
  '{"a":'.repeat(70),
  '['.repeat(70),
  '\\ud800',
  '1e999',
  '12345678901234567890',
  '""',
  'null',
  'HTTP/2.0',
].map((text) => Buffer.from(text, 'latin1'));

const NUMBERS = [
  '0',
  '-1',
  '1',
  '00',
  '65536',
  '262145',
  '2147483648',
  '9007199254740993',
  '18446744073709551616',
  '1e9',
];

type Mutation = (bytes: Buffer, dice: Chance, others: readonly Buffer[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  /** Flips some bits. */
  (bytes, dice) => {
    const flipped = Buffer.from(bytes);
    for (let left = 1 + dice.below(4); left > 0 && bytes.length > 0; left -= 1) {
      const at = dice.below(bytes.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << dice.below(8));
    }
    return flipped;
  },
  /** The start of one request, the end of another. */
  (bytes, dice, others) => {
    const other = dice.pick(others);
    return Buffer.concat([bytes.subarray(0, dice.below(bytes.length + 1)), other.subarray(dice.below(other.length))]);
  },
  /** Repeats a piece. */
  (bytes, dice) => {
    const [from, to] = span(bytes, dice);
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from, to), bytes.subarray(to)]);
  },
  /** Removes a piece. */
  (bytes, dice) => {
    const [from, to] = span(bytes, dice);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  /** Truncates the request. */
  (bytes, dice) => bytes.subarray(0, dice.below(bytes.length + 1)),
  /** Inserts a text. */
  (bytes, dice) => {
    const at = dice.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), dice.pick(TOKENS), bytes.subarray(at)]);
  },
  /** Swaps two lines. */
  (bytes, dice) => {
    const lines = bytes.toString('latin1').split('\r\n');
    const [one, two] = [dice.below(lines.length), dice.below(lines.length)];
    const swapped = lines.map((line, at) => (at === one ? lines[two] : at === two ? lines[one] : line));
    return Buffer.from(swapped.join('\r\n'), 'latin1');
  },
  /** Replaces a number. */
  (bytes, dice) => {
    const found = [...bytes.toString('latin1').matchAll(/\d+/g)];
    if (found.length === 0) return bytes;
    const { index, 0: digits } = dice.pick(found);
    const number = Buffer.from(dice.pick(NUMBERS));
    return Buffer.concat([bytes.subarray(0, index), number, bytes.subarray(index + digits.length)]);
  },
];

function span(bytes: Buffer, dice: Chance): readonly [from: number, to: number] {
  const from = dice.below(bytes.length + 1);
  return [from, Math.min(bytes.length, from + 1 + dice.below(64))];
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Up to four mutations of one of the requests, one after the other. In every other one the head
 * stays and declares the true length of the mutated body: otherwise no mutant would pass the
 * framing.
 */
export function mutant(requests: readonly Buffer[], dice: Chance): Buffer {
  const request = dice.pick(requests);
  const bodyAt = request.indexOf(HEAD_END) + HEAD_END.length;
  if (bodyAt === request.length || dice.below(2) === 0) return mutated(request, requests, dice);
  const body = mutated(request.subarray(bodyAt), requests, dice);
  const head = request.toString('latin1', 0, bodyAt).replace(/(?<=content-length: )\d+/i, String(body.length));
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

function mutated(request: Buffer, requests: readonly Buffer[], dice: Chance): Buffer {
  let bytes = request;
  for (let left = 1 + dice.below(4); left > 0; left -= 1) bytes = dice.pick(MUTATIONS)(bytes, dice, requests);
  return bytes;
}
