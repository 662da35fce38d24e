import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CHANNELS, type Order, type Reply } from '../e2e/mandate-channels.ts';
import { openMandateCounter } from '../e2e/mandate-counter.ts';
import { type MandateSeller, now } from '../e2e/mandate-seller.ts';
import { eventually } from '../support/books.ts';
import type { Shop } from '../support/shop.ts';

const INPUT = { city: 'Berlin' };
/** Costs nothing, so that a mandate is all there is to refuse. */
const FREE = 'free_market_report';
/** What may stand in the line of a refusal, beside level and time. */
const MEMBERS = [
  'callId',
  'channel',
  'method',
  'ms',
  'msg',
  'outcome',
  'path',
  'reason',
  'requestId',
  'resource',
  'status',
];
/** A word of the caller that no line may repeat. */
const CANARY = 'https://canary-of-the-caller.example';

type Line = Readonly<Record<string, unknown>>;

/** The line of a request, as soon as it is there. */
function lineOf({ logLines }: Shop, { requestId }: Reply): Promise<Line> {
  const lines = (): readonly Line[] => logLines.map((line) => JSON.parse(line) as Line);
  return eventually(
    async () => lines().find((line) => line['requestId'] === requestId && line['path'] !== undefined),
    `the line of ${requestId}`,
  );
}

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`the line of a call with a mandate, over ${channel}`, () => {
    let seller: MandateSeller;
    before(async () => {
      seller = await openMandateCounter(send);
    });
    after(() => seller?.close());

    const told = async (order: Partial<Order>): Promise<Line> =>
      lineOf(seller.shop, await send(seller.shop, { resourceId: FREE, input: INPUT, ...order }));
    const mandateFor = async (input: object, wishes: Parameters<MandateSeller['mandateFor']>[1] = {}) => {
      const asked = await send(seller.shop, { resourceId: FREE, input });
      const purchase = seller.purchaseOf(FREE, 'Market report', input);
      return seller.mandateFor(asked.body, { purchase, now: now(), ...wishes }).header;
    };
    const because = ({ outcome, reason, resource }: Line) => [outcome, reason, resource];

    it('says why the mandate was refused, in the word of the list', async () => {
      assert.deepEqual(because(await told({})), ['AUTHORIZATION_REQUIRED', 'mandate_required', FREE]);
      const other = await mandateFor({ city: 'Paris' });
      assert.deepEqual(because(await told({ mandate: other })), ['AUTHORIZATION_INVALID', 'input_mismatch', FREE]);
      const mandate = await mandateFor(INPUT);
      assert.deepEqual(because(await told({ mandate })), ['delivered', undefined, FREE]);
      assert.deepEqual(because(await told({ mandate })), ['AUTHORIZATION_REPLAYED', 'replayed', FREE]);
    });

    it('says it of a mandate for a payment, which is refused where the payment would be reserved', async () => {
      const resourceId = 'market_report';
      const asked = await send(seller.shop, { resourceId, input: INPUT });
      const purchase = seller.purchaseOf(resourceId, 'Market report', INPUT, '0.01');
      const mandate = seller.mandateFor(asked.body, { purchase }).header;
      const order = async () => ({ resourceId, mandate, proof: await seller.buyer.pay(asked.body.payment?.envelope) });
      assert.deepEqual(because(await told(await order())), ['delivered', undefined, resourceId]);
      assert.deepEqual(because(await told(await order())), ['AUTHORIZATION_REPLAYED', 'replayed', resourceId]);
    });

    it('has nothing that the mandate says, nor members that nobody named', async () => {
      const issuer = { key: seller.mint.parties.stranger, iss: CANARY };
      const line = await told({ mandate: await mandateFor(INPUT, { issuer }) });
      assert.deepEqual(because(line), ['AUTHORIZATION_INVALID', 'untrusted_issuer', FREE]);
      const { level: _level, time: _time, ...rest } = line;
      assert.deepEqual(Object.keys(rest).sort(), MEMBERS);
      assert.ok(seller.shop.logLines.every((text) => !text.includes(CANARY)));
    });

    it('has no reason where the mandate was not what was refused', async () => {
      const mandate = await mandateFor(INPUT);
      const unfit = await told({ mandate, input: {} });
      assert.deepEqual(because(unfit), ['INPUT_INVALID', undefined, FREE]);
    });
  });
