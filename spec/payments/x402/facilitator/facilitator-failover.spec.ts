import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connectFacilitator, type Facilitator } from '../../../../src/payments/x402/facilitator/facilitator.ts';
import { createFailover, STEP_BACK_MS } from '../../../../src/payments/x402/facilitator/remote-rail.ts';

const NONE = { kind: 'none' };
const REFUSED = { kind: 'denied' };

/** Names are hosts; no call here reaches the network. */
function lineOf(names: readonly string[]) {
  let now = 1_000;
  const line = createFailover(
    names.map((name) => connectFacilitator({ url: `http://${name}.invalid`, auth: { type: 'none' } }, () => undefined)),
    () => now,
  );
  /** The facilitators that were asked, with their deadlines; each takes `takes` milliseconds. */
  const ask = async (answers: Readonly<Record<string, { readonly kind: string }>>, takes = 0) => {
    const asked: (readonly [name: string, deadlineMs: number])[] = [];
    for (const turn of line.turns(6_000)) {
      const answer = await turn.ask(async ({ name }: Facilitator, deadlineMs) => {
        asked.push([name.replace('.invalid', ''), deadlineMs]);
        now += takes;
        return answers[name.replace('.invalid', '')] ?? NONE;
      });
      if (answer.kind !== 'none') break;
    }
    return asked;
  };
  const order = async (answers: Readonly<Record<string, { readonly kind: string }>>) =>
    (await ask(answers)).map(([name]) => name).join('');
  return { ask, order, pass: (ms: number) => (now += ms) };
}

describe('the order of facilitators', () => {
  it('asks the next one only while there is no verdict, and a refusal is one', async () => {
    const { order } = lineOf(['a', 'b', 'c']);
    assert.equal(await order({ a: REFUSED }), 'a');
    assert.equal(await order({ b: REFUSED }), 'ab');
  });

  it('asks one that gave no verdict last, for ten seconds', async () => {
    const { order, pass } = lineOf(['a', 'b', 'c']);
    await order({ b: REFUSED });
    pass(STEP_BACK_MS - 1);
    assert.equal(await order({ c: REFUSED }), 'bc');
    pass(1);
    assert.equal(await order({ a: REFUSED }), 'a');
  });

  it('asks those that failed in the order in which they did, and never leaves one out', async () => {
    const { order, pass } = lineOf(['a', 'b', 'c']);
    await order({ b: REFUSED });
    pass(5);
    assert.equal(await order({}), 'bca');
  });

  it('restores the order with the next verdict', async () => {
    const { order } = lineOf(['a', 'b']);
    await order({});
    assert.equal(await order({ a: REFUSED }), 'a');
    assert.equal(await order({ a: REFUSED }), 'a');
  });

  it('leaves each one a share of the time that is left', async () => {
    assert.deepEqual(await lineOf(['a']).ask({}), [['a', 6_000]]);
    const quick = await lineOf(['a', 'b', 'c']).ask({});
    assert.deepEqual(quick, [['a', 2_000], ['b', 3_000], ['c', 6_000]]); // biome-ignore format: a table
    const slow = await lineOf(['a', 'b']).ask({}, 3_000);
    assert.deepEqual(slow, [['a', 3_000], ['b', 3_000]]); // biome-ignore format: a table
    const late = await lineOf(['a', 'b']).ask({}, 6_000);
    assert.deepEqual(late, [['a', 3_000]]);
  });
});
