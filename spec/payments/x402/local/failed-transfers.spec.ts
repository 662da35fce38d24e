import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodeFunctionData, type Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { evidenceQuery } from '../../../../src/payments/x402/chain/payment-reading.ts';
import type { Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import { createLocalRail, FAILED_PAYER_PAUSE_MS } from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { TOKEN_ABI } from '../../../../tools/local-world/contracts.ts';
import { freshAddress, genuineProof, PRICE_UNITS } from '../signing.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

/** Far below the minute that a transaction may take. */
const SOON_MS = 5_000;

describe('a transfer that fails in its block', () => {
  let stage: Stage;
  let rail: PaymentRail;
  let clock = 0;
  before(async () => {
    stage = await openStage();
    const { rpc, chain, terms, local } = stage;
    rail = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey, now: () => clock });
  });
  after(() => stage.close());

  /** The payer empties the account between simulation and block. */
  const failing = async () => {
    const { account, proof } = await stage.actors.buyer();
    const begun = performance.now();
    let transaction: Hex | undefined;
    const outcome = await rail.settle(proof, stage.offer, async ({ hash }) => {
      transaction = hash as Hex;
      await empty(account);
    });
    return { account, proof, outcome, transaction, tookMs: performance.now() - begun };
  };
  const empty = async ({ address }: PrivateKeyAccount): Promise<void> => {
    const { local } = stage;
    await local.fundGas(address);
    const args = [freshAddress() as Hex, PRICE_UNITS] as const;
    const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args });
    await local.send(address, local.token.address, call);
  };

  it('ends the wait at once and stays uncertain: the authorization can still pay', async () => {
    const { account, proof, outcome, transaction, tookMs } = await failing();
    assert.equal(outcome.kind === 'uncertain' && outcome.failed, true);
    assert.equal(outcome.transaction, transaction);
    assert.ok(tookMs < SOON_MS, `${Math.round(tookMs)} ms`);
    await stage.local.mint(account.address, PRICE_UNITS);
    const stranger = await stage.actors.submit(proof);
    const paid = { kind: 'settled', evidence: 'logs', transaction: stranger, by: 'others' };
    assert.deepEqual(await rail.reconcile(proof, stage.offer, { sentBefore: true, transaction }), paid);
  });

  it('is no failure while the newest block of the node is older: another transaction of its block may have paid', async () => {
    const { proof, transaction } = await failing();
    const query = evidenceQuery(proof, stage.offer, transaction);
    const mined = (await stage.rpc.call('eth_getTransactionReceipt', [transaction])) as { blockNumber: string };
    for (const [blocksBehind, failed] of [
      [1n, undefined],
      [0n, true],
    ] as const) {
      const head = `0x${(BigInt(mined.blockNumber) - blocksBehind).toString(16)}`;
      const behind: Pick<Rpc, 'call'> = {
        call: (method, params) =>
          stage.rpc.call(method, method === 'eth_getBlockByNumber' && params[0] === 'latest' ? [head, false] : params),
      };
      const evidence = await createChain({ ...stage.rpc, ...behind }).readEvidence(query);
      assert.equal(evidence.kind === 'open' && evidence.failed, failed);
    }
  });

  it('makes its payer wait before the next transfer; others go on', async () => {
    const { account, proof } = await failing();
    await stage.local.mint(account.address, 2n * PRICE_UNITS);
    const next = await genuineProof(account, stage.terms);
    const failedAt = clock;
    clock = failedAt + FAILED_PAYER_PAUSE_MS - 1;
    assert.equal((await rail.verify(next, stage.offer)).kind, 'unavailable');
    const { outcome, written } = await settleThrough(rail, proof, stage.offer, { sentBefore: true });
    assert.deepEqual([outcome.kind, written.length], ['uncertain', 0]);
    const { proof: other } = await stage.actors.buyer();
    assert.equal((await settleThrough(rail, other, stage.offer)).outcome.kind, 'settled');
    clock = failedAt + FAILED_PAYER_PAUSE_MS;
    assert.equal((await settleThrough(rail, next, stage.offer)).outcome.kind, 'settled');
  });

  const ends: readonly (readonly [
    what: string,
    end: (account: PrivateKeyAccount, proof: Proof) => Promise<unknown>,
    next: 'unavailable' | 'valid',
  ])[] = [
    [
      'is cancelled by its payer: the payer waits',
      (account, proof) => stage.actors.cancel(account, proof),
      'unavailable',
    ],
    ['is submitted by a stranger first: its payer has paid', (_, proof) => stage.actors.submit(proof), 'valid'],
  ];
  for (const [what, end, next] of ends)
    it(`because it ${what}`, async () => {
      const { account, proof } = await stage.actors.buyer(2n * PRICE_UNITS);
      await rail.settle(proof, stage.offer, async () => void (await end(account, proof)));
      assert.equal((await rail.verify(await genuineProof(account, stage.terms), stage.offer)).kind, next);
    });
});
