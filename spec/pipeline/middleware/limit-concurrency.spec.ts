import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { countUntilClosed, limitConcurrency, trackInFlight } from '../../../src/pipeline/middleware/admit.ts';
import { Slots } from '../../../src/server/limits/load-shedding.ts';
import { passed } from '../calls.ts';

const response = (): Response => Object.assign(new EventEmitter(), { locals: {} }) as unknown as Response;
const open = { accepting: () => true };

/** A lifecycle that counts what runs. */
function counting() {
  const counted = { running: 0 };
  const begin = () => {
    counted.running += 1;
    return () => {
      counted.running -= 1;
    };
  };
  return { counted, begin };
}

describe('the slot of a call', () => {
  it('is taken while one is free; without one the call gets 503 and when to come back', async () => {
    const slots = new Slots(1);
    const middleware = limitConcurrency(open, slots);
    assert.equal((await passed(middleware, response())).went, true);
    const { went, error } = await passed(middleware, response());
    assert.deepEqual([went, error?.code, error?.headers['retry-after']], [false, 'GATEWAY_BUSY', '1']);
    assert.equal(slots.inFlight(), 1, 'a refused call takes none');
  });

  it('is refused while the gate is closed', async () => {
    const slots = new Slots(1);
    const { went, error } = await passed(limitConcurrency({ accepting: () => false }, slots), response());
    assert.deepEqual([went, error?.code, slots.inFlight()], [false, 'GATEWAY_BUSY', 0]);
  });

  it('is free again when both the connection and the tracked work are done', async () => {
    const slots = new Slots(1);
    const res = response();
    const { promise: work, resolve: finish } = Promise.withResolvers<void>();
    await passed(limitConcurrency(open, slots), res);
    const tracked = passed(
      trackInFlight(counting(), () => work),
      res,
    );
    await Promise.resolve();
    res.emit('close');
    assert.equal(slots.inFlight(), 1, 'the caller left, its work runs');
    finish();
    await tracked;
    assert.equal(slots.inFlight(), 0);
  });
});

describe('what the drain waits for', () => {
  it('the work of a tracked middleware, also when it fails', async () => {
    const { counted, begin } = counting();
    const bug = new Error('bug');
    const { error } = await passed(
      trackInFlight({ begin }, async () => {
        assert.equal(counted.running, 1);
        throw bug;
      }),
      response(),
    );
    assert.deepEqual([error, counted.running], [bug, 0]);
  });

  it('each request until its connection closes', async () => {
    const { counted, begin } = counting();
    const res = response();
    assert.equal((await passed(countUntilClosed({ begin }), res)).went, true);
    assert.equal(counted.running, 1);
    res.emit('close');
    assert.equal(counted.running, 0);
  });
});
