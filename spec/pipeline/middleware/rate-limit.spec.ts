import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../../src/errors.ts';
import { advanceCall, type Call } from '../../../src/pipeline/call.ts';
import { countUnlessPaid, rateLimit } from '../../../src/pipeline/middleware/admit.ts';
import { createTokenBuckets } from '../../../src/server/limits/rates.ts';
import { openBareListener } from '../../server/http/bare-listener.ts';
import { closeOf, dial, head } from '../../server/http/raw.ts';

const BURST = 3;

const answered = (kind: 'paid' | 'free'): Call => ({ stage: 'answered', funding: { kind } }) as unknown as Call;

const deliver = async (res: Response): Promise<void> => {
  res.end('{}');
  await once(res, 'finish');
};

/** How a call ends, and how many tokens its client has afterwards. */
const ENDS: readonly (readonly [
  rule: string,
  kind: 'paid' | 'free',
  end: (res: Response) => Promise<void>,
  left: number,
])[] = [
  ['a paid call that is delivered gives its token back', 'paid', deliver, BURST],
  ['a free call does not', 'free', deliver, BURST - 1],
  [
    'nor a paid one whose caller left before the last byte',
    'paid',
    async (res) => {
      res.write('half');
      res.destroy();
      await once(res, 'close');
    },
    BURST - 1,
  ],
  [
    'nor a paid one that failed',
    'paid',
    async () => {
      throw new GatewayError('BACKEND_ERROR');
    },
    BURST - 1,
  ],
];

describe('the token of a call', () => {
  for (const [rule, kind, end, left] of ENDS)
    it(rule, async () => {
      const buckets = createTokenBuckets({ perSecond: 1, burst: BURST }, { now: () => 0 });
      let ended: Promise<void> = Promise.resolve();
      const deliverCall: RequestHandler = (_req, res) => {
        advanceCall(res, answered(kind));
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

  it('is refused when none is left, with the time to come back, and the call goes no further', async () => {
    let limited = 0;
    const buckets = createTokenBuckets({ perSecond: 2, burst: 1 }, { now: () => 0 });
    const opened = await openBareListener([
      rateLimit(
        buckets,
        () => 'client',
        () => (limited += 1),
      ),
    ]);
    const [first, second] = [await fetch(opened.url), await fetch(opened.url)];
    await Promise.all([first.arrayBuffer(), second.arrayBuffer()]);
    opened.close();
    assert.deepEqual([first.status, second.status, limited, opened.served.length], [200, 429, 1, 1]);
    assert.deepEqual(
      ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => second.headers.get(name)),
      ['"ip";q=1;w=1', '"ip";r=0;t=1', '1'],
    );
  });
});
