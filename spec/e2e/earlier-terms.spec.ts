import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/records.ts';
import { AFTER, SEALING } from '../support/settled-after.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring, failure } from './bring.ts';

const ID = 'market_report';
const INPUT = { city: 'Berlin' };

describe('a reload', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { resources: { [ID]: AFTER }, storage: { sealing: SEALING } };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());

  const flowOf = async (): Promise<unknown> => {
    const [offer] = (await testbed.quote(ID, INPUT)).body.payment.accepts;
    return (offer?.['extra'] as { readonly paymentFlow?: string } | undefined)?.paymentFlow;
  };
  const settled = (settle: 'before' | 'after') => ({
    resources: { [ID]: { ...AFTER, pricing: { settle } } },
    storage: { sealing: SEALING },
  });

  it('that changes a method: what was paid before is collected with the request that it bought', async () => {
    const { gateway, proof, income } = testbed;
    const [signed, earned] = [await proof('flaky', { failures: 1 }), await income()];
    failure(await bring(gateway, 'flaky', { failures: 1 }, { proof: signed }), 502, 'BACKEND_ERROR');
    const out = await proof('flaky', { failures: 0 });
    gateway.reload({ ...settled('after'), resources: { flaky: { backend: { method: 'POST' } } } });
    const collected = await eventually(async () => {
      const brought = await bring(gateway, 'flaky', { failures: 1 }, { proof: signed });
      return brought.status === 200 ? brought : undefined;
    }, 'the answer');
    assert.equal(collected.payment?.success, true);
    const again = await bring(gateway, 'flaky', { failures: 2 }, { proof: signed });
    assert.equal(failure(again, 409, 'PAYMENT_REPLAYED').details.state, 'used', 'another input is another purchase');
    assert.equal((await bring(gateway, 'flaky', { failures: 0 }, { proof: out })).status, 200, 'an offer that is out');
    assert.equal((await income()) - earned > 0n, true);
    gateway.reload(settled('after'));
  });

  for (const [from, to] of [
    ['after', 'before'],
    ['before', 'after'],
  ] as const)
    it(`that changes settle from ${from} to ${to}: an offer that is out is paid as it was made`, async () => {
      const { gateway, proof, backend } = testbed;
      gateway.reload(settled(from));
      const signed = await proof(ID, INPUT);
      gateway.reload(settled(to));
      backend.forget();
      const bought = await bring(gateway, ID, INPUT, { proof: signed });
      assert.equal(bought.status, 200, bought.bytes.toString());
      assert.equal(await flowOf(), to === 'after' ? 'authorization' : 'upfront');
      const events = (await (await gateway.operator(`/api/events?requestId=${bought.requestId}`)).json()) as {
        readonly events: readonly { readonly type: string }[];
      };
      const order = events.events.map(({ type }) => type).reverse();
      const [money, work] = [order.indexOf('payment.settled'), order.indexOf('backend.called')];
      assert.ok(money >= 0 && work >= 0, order.join());
      assert.equal(work < money, from === 'after', order.join());
    });
});
