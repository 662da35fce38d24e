import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { decode } from '../../e2e/proofs.ts';
import { openSeller, type Seller } from '../../support/seller.ts';
import { openShop, type Shop } from '../../support/shop.ts';
import {
  ACTIVATED,
  CONTINUED,
  dataOf,
  errorOf,
  message,
  paying,
  postA2a,
  sendMessage,
  taskOf,
  VERSION,
  x402Of,
} from './post.ts';

const CITY = { city: 'Berlin' };

/** What discovery says of the A2A front. */
interface Described {
  readonly name: string;
  readonly capabilities: readonly string[];
  readonly unsupported: readonly string[];
}

describe('continuation that is not switched on', () => {
  let seller: Seller;
  let continued: Shop;
  before(async () => {
    seller = await openSeller({ overrides: { protocols: { a2a: { enabled: true } } } });
    const { chain, merchant } = seller;
    continued = await openShop({
      chain,
      merchantUrl: merchant.url,
      facilitator: { mode: 'local' },
      overrides: CONTINUED,
    });
  });
  after(async () => {
    await continued?.close();
    await seller?.close();
  });
  const post = (base: string, content: object) => postA2a(base, sendMessage(content), { ...VERSION, ...ACTIVATED });
  const described = async (base: string): Promise<Described> => {
    const answer = await fetch(`${base}/.well-known/agent-commerce`);
    const { adapters } = (await answer.json()) as { readonly adapters: readonly Described[] };
    return adapters.find(({ name }) => name === 'a2a') ?? assert.fail('no A2A front');
  };

  it('payment required ends the task, whatever the request activates', async () => {
    const answer = await post(seller.shop.url, message('market_report', CITY));
    assert.equal(answer.headers['a2a-extensions'], undefined, 'no extension is active');
    const task = taskOf(answer);
    assert.equal(task.status.state, 'TASK_STATE_FAILED');
    assert.equal(dataOf(task)['code'], 'PAYMENT_REQUIRED');
    assert.doesNotMatch(task.status.message?.parts[0].text ?? '', /taskId/);
  });

  it('a payment for a task that waits elsewhere is refused here, and buys as a message of its own', async () => {
    const asked = taskOf(await post(continued.url, message('market_report', CITY)));
    assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const ended = taskOf(await post(seller.shop.url, message('market_report', CITY)));
    const payload = decode(await seller.buyer.pay(x402Of(ended)['x402.payment.required']));
    for (const id of [asked.id, ended.id]) {
      const error = errorOf(await post(seller.shop.url, paying(id, payload)), 1);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'TASK_NOT_FOUND']);
    }
    assert.equal(await seller.income(), 0n);
    const metadata = { 'x402.payment.payload': payload };
    const bought = taskOf(await post(seller.shop.url, message('market_report', CITY, { metadata })));
    assert.equal(bought.status.state, 'TASK_STATE_COMPLETED');
  });

  it('discovery names it as unsupported, and as a capability where it is switched on', async () => {
    const [off, on] = [await described(seller.shop.url), await described(continued.url)];
    assert.ok(off.unsupported.includes('continuation') && !off.capabilities.includes('continuation'));
    assert.ok(on.capabilities.includes('continuation') && !on.unsupported.includes('continuation'));
  });
});
