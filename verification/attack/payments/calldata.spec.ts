import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { decodeFunctionData, type Hex } from 'viem';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { receiptWhen } from '../../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { attack } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Channel, type Purchase, type Seen } from './channels.ts';

const INPUT = { city: 'Berlin' };
const RESOURCE = { resourceId: 'market_report', input: INPUT } as const;

describe('a proof that was read on the chain', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());

  const bring = (channel: Channel, call: Purchase): Promise<Seen> => buy(testbed.gateway.url, channel, call);
  /** The income of an action, and its number of backend requests. */
  const came = async (action: () => Promise<void>): Promise<readonly [units: bigint, executions: number]> => {
    const [income, executions] = [await testbed.income(), testbed.backend.requests.length];
    await action();
    return [(await testbed.income()) - income, testbed.backend.requests.length - executions];
  };

  for (const keyed of [true, false])
    attack(
      'X17',
      `rebuilt from its public calldata, ${keyed ? 'bought with a key' : 'without one'}: delivers nothing`,
      async () => {
        const proof = await testbed.proof('market_report', INPUT);
        const headers = keyed ? { 'idempotency-key': 'a secret of the buyer' } : {};
        const first = await bring('http', { ...RESOURCE, proof, headers });
        const { payment } = await receiptWhen(testbed.gateway, first.requestId, true);
        const rebuilt = await fromCalldata(testbed, String(payment?.externalReference));
        assert.equal(decode(rebuilt).payload.authorization['nonce'], decode(proof).payload.authorization['nonce']);
        const gone = await came(async () => {
          for (const channel of CHANNELS)
            for (const guess of [undefined, 'a guess', 'a secret of the buyer '.trimEnd().toUpperCase()]) {
              const guessed = guess === undefined ? {} : { 'idempotency-key': guess };
              const seen = await bring(channel, { ...RESOURCE, proof: rebuilt, headers: guessed });
              assert.deepEqual([seen.outcome, seen.code], ['failed', 'PAYMENT_REPLAYED'], seen.everything);
              assert.ok(!seen.everything.includes('volume'), 'a word of the answer');
            }
        });
        assert.deepEqual(gone, [0n, 0]);
      },
    );

  attack('X17', 'rebuilt from the public calldata of a failed call with a key: collects nothing', async () => {
    const call = { resourceId: 'flaky', input: { failures: 2 } };
    const proof = await testbed.proof(call.resourceId, call.input);
    const headers = { 'idempotency-key': 'the key of a failed call' };
    const first = await bring('http', { ...call, proof, headers });
    assert.deepEqual([first.outcome, first.state], ['failed', 'undelivered']);
    const { payment } = await receiptWhen(testbed.gateway, first.requestId, false);
    const rebuilt = await fromCalldata(testbed, String(payment?.externalReference), 'flaky', call.input);
    for (const channel of CHANNELS)
      assert.notEqual((await bring(channel, { ...call, proof: rebuilt })).outcome, 'delivered', channel);
  });
});

/**
 * The proof that a reader of the chain can rebuild from a settlement: the offer is public, the rest
 * is in the transaction.
 */
async function fromCalldata(
  testbed: Testbed,
  hash: string,
  resourceId = 'market_report',
  input: unknown = INPUT,
): Promise<string> {
  const { input: calldata } = (await testbed.chain.request('eth_getTransactionByHash', [hash])) as { input: Hex };
  const { args } = decodeFunctionData({ abi: TOKEN_ABI, data: calldata });
  const [from, to, value, validAfter, validBefore, nonce, v, r, s] = args as unknown as readonly string[];
  const { body } = await testbed.quote(resourceId, input);
  const signature = `${r}${(s ?? '').slice(2)}${Number(v).toString(16)}`;
  const authorization = {
    from,
    to,
    nonce,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
  };
  const { accepts, resource } = body.payment.envelope as { accepts: readonly object[]; resource: object };
  return encode({ x402Version: 2, resource, accepted: accepts[0], payload: { signature, authorization } });
}
