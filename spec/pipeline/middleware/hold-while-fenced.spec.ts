import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { holdWhileFenced } from '../../../src/pipeline/middleware/admit.ts';
import { passed } from '../calls.ts';

const response = (): Response => Object.assign(new EventEmitter(), { locals: {} }) as unknown as Response;

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
