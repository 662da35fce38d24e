import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Request, RequestHandler, Response } from 'express';
import type { Stage } from '../../../src/pipeline/call.ts';
import { inOrder, type StepName, timed } from '../../../src/pipeline/middleware/timed.ts';
import { callAt, passed } from '../calls.ts';

const CASES: readonly (readonly [StepName, Stage, entered: boolean])[] = [
  ['verify', 'prepared', true],
  ['verify', 'funded', false],
  ['settle', 'proven', true],
  ['settle', 'funded', false],
  ['forward', 'funded', true],
  ['forward', 'answered', false],
  // A free call is checked for its mandate, and each answer is delivered.
  ['authorize', 'funded', true],
  ['conclude', 'answered', true],
];

describe('a timed step', () => {
  for (const [name, stage, entered] of CASES)
    it(`${name} is ${entered ? '' : 'not '}entered by a call that is ${stage}`, async () => {
      const watched: StepName[] = [];
      const step = timed((step) => () => void watched.push(step));
      const { went } = await passed(
        step(name, (_req, _res, next) => next()),
        callAt(stage).res,
      );
      assert.deepEqual([went, watched], [true, entered ? [name] : []]);
    });
});

const REQ = {} as Request;
const RES = {} as Response;
const FAULT = new Error('a fault');

/** Runs handlers until one of them ended the request, or all passed it on. */
function run(handlers: readonly RequestHandler[], answer: (thrown: unknown) => void = () => undefined) {
  return new Promise<readonly [how: 'passed on' | 'failed', what?: unknown]>((resolve) => {
    const failed = (thrown: unknown): void => {
      answer(thrown);
      resolve(['failed', thrown]);
    };
    inOrder(handlers, (thrown, _req, _res, _next) => failed(thrown))(REQ, RES, (thrown?: unknown) =>
      resolve(['passed on', thrown]),
    );
  });
}

describe('handlers in order', () => {
  const noted: string[] = [];
  const step =
    (name: string): RequestHandler =>
    (req, res, next) => {
      assert.deepEqual([req, res], [REQ, RES]);
      noted.push(name);
      next();
    };

  it('run one after the other, and then what comes next', async () => {
    noted.length = 0;
    const later: RequestHandler = (_req, _res, next) => void setImmediate(() => next());
    const waiting: RequestHandler = async (_req, _res, next) => {
      await Promise.resolve();
      next();
    };
    assert.deepEqual(await run([step('a'), later, step('b'), waiting, step('c')]), ['passed on', undefined]);
    assert.deepEqual(noted, ['a', 'b', 'c']);
  });

  it('end where one does not go on', () => {
    noted.length = 0;
    inOrder([step('a'), () => undefined, step('b')], assert.fail)(REQ, RES, assert.fail);
    assert.deepEqual(noted, ['a']);
  });

  const FAILING: Readonly<Record<string, RequestHandler>> = {
    throws: () => {
      throw FAULT;
    },
    rejects: () => Promise.reject(FAULT),
    'passes it to next': (_req, _res, next) => next(FAULT),
  };
  for (const [how, failing] of Object.entries(FAILING))
    it(`fail where one ${how}, and run no further`, async () => {
      noted.length = 0;
      assert.deepEqual(await run([step('a'), failing, step('b')]), ['failed', FAULT]);
      assert.deepEqual(noted, ['a']);
    });

  it('fail also for one that rejects without a reason', async () => {
    const [how, what] = await run([() => Promise.reject<void>(undefined)]);
    assert.ok(how === 'failed' && what instanceof Error);
  });

  for (const how of ['throws', 'rejects'] as const)
    it(`pass on what the answer to a failure throws, where one ${how}`, async () => {
      const worse = new Error('no answer');
      const answering = run([FAILING[how] ?? assert.fail()], () => {
        throw worse;
      });
      assert.deepEqual(await answering, ['passed on', worse]);
    });
});
