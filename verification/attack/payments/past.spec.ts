import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { decodeFunctionData, type Hex } from 'viem';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { termsFor } from '../../../spec/payments/x402/signing.ts';
import { chainActors } from '../../../spec/payments/x402/stage.ts';
import { receiptWhen } from '../../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import type { Proof } from '../../../src/payments/x402/wire/types.ts';
import { TOKEN_ABI } from '../../../tools/local-world/contracts.ts';
import { attack } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Channel, causedBy, type Purchase, type Seen } from './channels.ts';

const INPUT = { city: 'Berlin' };
const RESOURCE = { resourceId: 'market_report', input: INPUT } as const;

/** The proof of a header, as the actors of the chain take it. */
function actable(header: string): Proof {
  return { payId: '', payload: decode(header), signedBy: 'account' } as unknown as Proof;
}

describe('a proof that is cancelled, used or for another offer', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-attack-'));
  const storage = { sqlite: { path: join(folder, 'gateway.db') } };
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS, storage });
  });
  after(async () => {
    await testbed.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const actors = () => chainActors(testbed.chain, termsFor(testbed.chain.token));
  const bring = (channel: Channel, call: Purchase): Promise<Seen> => buy(testbed.gateway.url, channel, call);
  const came = (action: () => Promise<void>) => causedBy(testbed, action);

  for (const channel of CHANNELS) {
    attack('X14', `cancelled by its payer before it is brought over ${channel}: 402, nothing delivered`, async () => {
      const gone = await came(async () => {
        const proof = await testbed.proof('market_report', INPUT);
        await actors().cancel(testbed.buyer.account, actable(proof));
        assert.equal((await bring(channel, { ...RESOURCE, proof })).outcome, 'asked');
      });
      assert.deepEqual(gone, [0n, 0]);
    });

    attack(
      'X14',
      `spent by its payer on itself before it is brought over ${channel}: 402, nothing delivered`,
      async () => {
        const gone = await came(async () => {
          const proof = await testbed.proof('market_report', INPUT);
          await actors().spendOnSelf(testbed.buyer.account, actable(proof));
          assert.equal((await bring(channel, { ...RESOURCE, proof })).outcome, 'asked');
        });
        assert.deepEqual(gone, [0n, 0]);
      },
    );

    attack(
      ['X13', 'I1'],
      `submitted by a stranger before it is brought over ${channel}: delivered once, paid once`,
      async () => {
        const gone = await came(async () => {
          const proof = await testbed.proof('market_report', INPUT);
          await actors().submit(actable(proof));
          const first = await bring(channel, { ...RESOURCE, proof });
          assert.equal(first.outcome, 'delivered');
          // As the chain shows it: without the token that the gateway issued to its buyer.
          const seen = decode(proof);
          delete seen.extensions;
          for (const other of CHANNELS) {
            assert.equal((await bring(other, { ...RESOURCE, proof: encode(seen) })).code, 'PAYMENT_REPLAYED');
            const again = await bring(other, { ...RESOURCE, proof });
            assert.deepEqual([again.outcome, again.bytes], ['delivered', first.bytes], 'the answer that was kept');
          }
        });
        assert.deepEqual(gone, [10_000n, 1]);
      },
    );
  }

  attack(['X5', 'I6'], 'without a resource buys the first of two siblings that it is brought for', async () => {
    const gone = await came(async () => {
      const unnamed = decode(await testbed.proof('noisy'));
      delete unnamed.resource;
      const proof = encode(unnamed);
      const answers = await Promise.all(
        ['noisy', 'greeting', 'request_headers', 'nothing'].map((resourceId, at) =>
          bring(CHANNELS[at % CHANNELS.length] ?? 'http', { resourceId, proof }),
        ),
      );
      assert.equal(answers.filter(({ outcome }) => outcome === 'delivered').length, 1);
    });
    assert.deepEqual(gone, [1_000n, 1]);
  });
});

describe('a proof that was read on the chain', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: ALL_CHANNELS });
  });
  after(() => testbed.close());

  const bring = (channel: Channel, call: Purchase): Promise<Seen> => buy(testbed.gateway.url, channel, call);
  const came = (action: () => Promise<void>) => causedBy(testbed, action);

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
