import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, it } from 'node:test';
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../../src/errors.ts';
import { advanceCall, type Call } from '../../../src/pipeline/call.ts';
import {
  countUnlessPaid,
  countUntilClosed,
  holdWhileFenced,
  limitConcurrency,
  rateLimit,
  trackInFlight,
} from '../../../src/pipeline/middleware/admit.ts';
import { Slots } from '../../../src/server/limits/load-shedding.ts';
import { createTokenBuckets } from '../../../src/server/limits/rates.ts';
import { openBareListener } from '../../server/http/bare-listener.ts';
import { closeOf, dial, head } from '../../server/http/raw.ts';
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

describe('a call at the fence', () => {
  it('goes on in the same turn where there is none', () => {
    const open = { up: () => false, pass: () => assert.fail('nothing is waited for') };
    let went = false;
    holdWhileFenced(open)({} as never, response(), () => {
      went = true;
    });
    assert.equal(went, true);
  });

  it('goes on when it may pass, and is refused before money moves when it may not', async () => {
    const fenced = (passes: boolean) => holdWhileFenced({ up: () => true, pass: async () => passes });
    assert.equal((await passed(fenced(true), response())).went, true);
    const { went, error } = await passed(fenced(false), response());
    assert.deepEqual([went, error?.code, error?.details?.reason], [false, 'GATEWAY_BUSY', 'backend_unreachable']);
    assert.equal(error?.headers['retry-after'], '1');
  });
});

const BURST = 3;

const PAID = { stage: 'answered', funding: { kind: 'paid' } } as unknown as Call;

/** How a call ends, and how many tokens its client has afterwards. */
const ENDS: readonly (readonly [rule: string, end: (res: Response) => Promise<void>, left: number])[] = [
  [
    'is not given back where the caller of a paid call left before the last byte',
    async (res) => {
      res.write('half');
      res.destroy();
      await once(res, 'close');
    },
    BURST - 1,
  ],
  [
    'nor where the paid call failed',
    async () => {
      throw new GatewayError('BACKEND_ERROR');
    },
    BURST - 1,
  ],
];

describe('the token of a call', () => {
  for (const [rule, end, left] of ENDS)
    it(rule, async () => {
      const buckets = createTokenBuckets({ perSecond: 1, burst: BURST }, { now: () => 0 });
      let ended: Promise<void> = Promise.resolve();
      const deliverCall: RequestHandler = (_req, res) => {
        advanceCall(res, PAID);
        return end(res);
      };
      const middleware = countUnlessPaid(deliverCall);
      const opened = await openBareListener([
        rateLimit(
          buckets,
          () => 'client',
          () => undefined,
        ),
        (req, res, next) => {
          const done = Promise.resolve(middleware(req, res, next));
          ended = done.then(
            () => undefined,
            () => undefined,
          );
          return done;
        },
      ]);
      const socket = (await dial(opened.url)).resume();
      socket.write(head(['POST / HTTP/1.1', 'Host: gateway', 'Connection: close']));
      await closeOf(socket);
      await ended;
      opened.close();
      assert.equal(buckets.take('client').left + 1, left);
    });
});
