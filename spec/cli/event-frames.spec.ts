import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { framesOf } from '../../src/cli/events.ts';

const STREAM =
  ': connected\n\nretry: 2000\n\nid: evt_1-0\ndata: {"a":"ü"}\n\n: gap\n\ndata: one\ndata:two\n\ndata: unfinished';
const FRAMES = [
  { kind: 'comment', text: 'connected' },
  { kind: 'retry', retryMs: 2_000 },
  { kind: 'event', id: 'evt_1-0', data: '{"a":"ü"}' },
  { kind: 'comment', text: 'gap' },
  { kind: 'event', id: 'evt_1-0', data: 'one\ntwo' },
];

async function read(chunks: readonly Uint8Array[]): Promise<readonly object[]> {
  async function* stream() {
    yield* chunks;
  }
  const frames: object[] = [];
  for await (const frame of framesOf(stream())) frames.push(frame);
  return frames;
}

describe('the frames of an event stream', () => {
  for (const [name, end] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const)
    it(`with ${name} are the same however they are cut into chunks`, async () => {
      const bytes = Buffer.from(STREAM.replaceAll('\n', end));
      for (const size of [1, 2, 3, 7, bytes.length]) {
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        assert.deepEqual(await read(chunks), FRAMES, `chunks of ${size}`);
      }
    });

  it('end with an error where a line has none', async () => {
    await assert.rejects(read([Buffer.alloc(1_048_576, 'a'), Buffer.from('a')]), /a line without an end/);
  });
});
