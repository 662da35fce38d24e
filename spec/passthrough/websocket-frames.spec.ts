import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameTracker } from '../../src/passthrough/websocket-frames.ts';

/** A frame with a payload of this length. */
function frame(length: number, masked: boolean): Buffer {
  const mask = masked ? 0x80 : 0;
  const head =
    length < 126
      ? [0x82, mask | length]
      : length < 65_536
        ? [0x82, mask | 126, length >> 8, length & 0xff]
        : [0x82, mask | 127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from([...head, ...(masked ? [1, 2, 3, 4] : [])]), Buffer.alloc(length, 0x88)]);
}

describe('the ends of frames', () => {
  it('are found however the bytes are cut', () => {
    const lengths = fc.array(fc.oneof(fc.nat(130), fc.constantFrom(125, 126, 65_535, 65_536)), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(
        lengths,
        fc.boolean(),
        fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1 }),
        (sizes, masked, cuts) => {
          const frames = sizes.map((size) => frame(size, masked));
          const ends = new Set<number>([0]);
          frames.reduce((at, { length }) => {
            ends.add(at + length);
            return at + length;
          }, 0);
          const bytes = Buffer.concat(frames);
          const tracker = new FrameTracker();
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const piece = bytes.subarray(at, at + (cuts[turn % cuts.length] ?? 1));
            tracker.follow(piece);
            at += piece.length;
            assert.equal(tracker.atBoundary, ends.has(at));
          }
          assert.equal(tracker.atBoundary, true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('are where the rest of a frame ends, and not where the next one does', () => {
    const tracker = new FrameTracker();
    const bytes = Buffer.concat([frame(300, true), frame(0, true), frame(5, true)]);
    tracker.follow(bytes.subarray(0, 100));
    assert.equal(tracker.followToBoundary(bytes.subarray(100)), frame(300, true).length - 100);
    assert.equal(tracker.atBoundary, true);
    assert.equal(tracker.followToBoundary(bytes.subarray(308)), frame(0, true).length);
  });
});
