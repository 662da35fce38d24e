import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Call, CHANNELS, type Reply } from '../e2e/mandate-channels.ts';
import { type MandateSeller, now } from '../e2e/mandate-seller.ts';
import { openMandateTestbed } from '../e2e/mandate-testbed.ts';
import type { TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/records.ts';

const INPUT = { city: 'Berlin' };
/** Free, so that only the mandate can be refused. */
const FREE = 'free_market_report';
/** The members of the line of a refusal, beside level and time. */
const MEMBERS = 'callId channel method ms msg outcome path reason requestId resource status'.split(' ');
/** A text of the caller that no line may have. */
const CANARY = 'https://canary-of-the-caller.example';

type Line = Readonly<Record<string, unknown>>;

/** The line of a request, as soon as it is there. */
function lineOf({ logLines }: TestGateway, { requestId }: Reply): Promise<Line> {
  const lines = (): readonly Line[] => logLines.map((line) => JSON.parse(line) as Line);
  return eventually(
    async () => lines().find((line) => line['requestId'] === requestId && line['path'] !== undefined),
    `the line of ${requestId}`,
  );
}

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`the line of a call with a mandate, over ${channel}`, () => {
    let testbed: MandateSeller;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

    const loggedFor = async (order: Partial<Call>): Promise<Line> =>
      lineOf(testbed.gateway, await send(testbed.gateway, { resourceId: FREE, input: INPUT, ...order }));
    const mandateFor = async (input: object, wishes: Parameters<MandateSeller['mandateFor']>[1] = {}) => {
      const asked = await send(testbed.gateway, { resourceId: FREE, input });
      const purchase = testbed.purchaseOf(FREE, 'Market report', input);
      return testbed.mandateFor(asked.body, { purchase, now: now(), ...wishes }).header;
    };
    const because = ({ outcome, reason, resource }: Line) => [outcome, reason, resource];

    it('has the reason why the mandate was refused, of the closed list', async () => {
      assert.deepEqual(because(await loggedFor({})), ['AUTHORIZATION_REQUIRED', 'mandate_required', FREE]);
      const other = await mandateFor({ city: 'Paris' });
      assert.deepEqual(because(await loggedFor({ mandate: other })), ['AUTHORIZATION_INVALID', 'input_mismatch', FREE]);
      const mandate = await mandateFor(INPUT);
      assert.deepEqual(because(await loggedFor({ mandate })), ['delivered', undefined, FREE]);
      assert.deepEqual(because(await loggedFor({ mandate })), ['AUTHORIZATION_REPLAYED', 'replayed', FREE]);
    });

    it('has it for a mandate of a payment, which is refused at its reservation', async () => {
      const resourceId = 'market_report';
      const asked = await send(testbed.gateway, { resourceId, input: INPUT });
      const purchase = testbed.purchaseOf(resourceId, 'Market report', INPUT, '0.01');
      const mandate = testbed.mandateFor(asked.body, { purchase }).header;
      const order = async () => ({ resourceId, mandate, proof: await testbed.buyer.pay(asked.body.payment?.envelope) });
      assert.deepEqual(because(await loggedFor(await order())), ['delivered', undefined, resourceId]);
      assert.deepEqual(because(await loggedFor(await order())), ['AUTHORIZATION_REPLAYED', 'replayed', resourceId]);
    });

    it('has no content of the mandate, and only the listed members', async () => {
      const issuer = { key: testbed.mint.parties.stranger, iss: CANARY };
      const line = await loggedFor({ mandate: await mandateFor(INPUT, { issuer }) });
      assert.deepEqual(because(line), ['AUTHORIZATION_INVALID', 'untrusted_issuer', FREE]);
      const { level: _level, time: _time, ...rest } = line;
      assert.deepEqual(Object.keys(rest).sort(), MEMBERS);
      assert.ok(testbed.gateway.logLines.every((text) => !text.includes(CANARY)));
    });

    it('has no reason if something else was refused', async () => {
      const mandate = await mandateFor(INPUT);
      const unfit = await loggedFor({ mandate, input: {} });
      assert.deepEqual(because(unfit), ['INPUT_INVALID', undefined, FREE]);
    });
  });
