import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { attack, measured } from '../catalogue.ts';
import { openTarget, type Target } from '../target.ts';
import { FIELDS_TO_THE_MERCHANT, fieldNames } from './backend-fields.ts';
import { converse } from './conversation.ts';
import { marksOf, meantBy, playFraming } from './framing.ts';
import { numbered } from './framing-case.ts';
import { HEAD_CASES } from './framing-heads.ts';
import { LENGTH_CASES } from './framing-lengths.ts';

const CASES = [...LENGTH_CASES, ...HEAD_CASES];

/** For cases without an answer. */
const RESET_AFTER_MS = 100;

describe('bytes that two parsers read differently', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  for (const [number, played] of CASES.entries())
    attack('H1', played.name, async (t) => {
      await playFraming(target.url, played, number);
      measured(t, 'framing cases', 1);
    });

  attack('H1', 'the backend got exactly the intended calls, each as a new message of the gateway', async (t) => {
    await target.stillSells();
    const requests = target.backend.requests.filter(({ body }) => body.toString() !== '{"still":"sells"}');
    const [got, meant] = [marksOf(requests), meantBy(CASES)];
    const differing = got.filter((mark) => !meant.includes(mark)).length + (meant.length - new Set(got).size);
    measured(t, 'differing views of the backend', Math.abs(differing));
    assert.deepEqual(got, meant);
    for (const request of requests) {
      assert.deepEqual(
        fieldNames(request).filter((name) => !FIELDS_TO_THE_MERCHANT.has(name)),
        [],
      );
      assert.equal(request.headers['content-length'], String(request.body.length));
      assert.equal(request.headers['transfer-encoding'], undefined);
    }
  });

  attack(
    ['H1', 'P7'],
    'after any bytes, answered or not, a reset ends its own connection and nothing else',
    async () => {
      for (const [number, { sends }] of CASES.entries())
        for (const answers of [0, 1]) {
          const conversation = await converse(target.url);
          conversation.send(numbered(sends, number));
          await conversation.until(answers, RESET_AFTER_MS);
          conversation.reset();
        }
      await target.stillSells();
    },
  );
});
