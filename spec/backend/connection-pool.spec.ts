import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SocketPoolQueue, type SocketTurn } from '../../src/backend/connection-pool.ts';

interface Lined {
  readonly start: () => void;
  turn: SocketTurn;
}
type Step = 'come' | 'finish' | 'give up';

describe('the queue for sockets', () => {
  it('serves in order, never more at once than there are sockets, and loses none', () => {
    const step = fc.constantFrom<Step>('come', 'come', 'finish', 'give up');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (sockets, steps) => {
        const queue = new SocketPoolQueue(sockets);
        const lined: Lined[] = [];
        const served: Lined[] = [];
        for (const what of steps) {
          if (what === 'come') {
            const start = (): void => {
              assert.equal(lined.shift()?.start, start, 'first come, first served');
              served.push(one);
            };
            const one: Lined = { start, turn: undefined };
            lined.push(one);
            one.turn = queue.take(start);
          } else if (what === 'give up') {
            // An exchange in the middle of the queue leaves; one that was served cannot.
            const [leaver] = lined.splice(Math.floor(lined.length / 2), 1);
            if (leaver !== undefined) assert.equal(queue.leave(leaver.turn), true);
            if (served[0] !== undefined) assert.equal(queue.leave(served[0].turn), false);
          } else if (served.shift() !== undefined) {
            queue.release();
          }
          assert.ok(served.length <= sockets);
          assert.ok(lined.length === 0 || served.length === sockets, 'none waits beside a free socket');
        }
      }),
      { numRuns: 300 },
    );
  });
});
