import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Chain, createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { createRpc } from '../../../../src/payments/x402/chain/rpc.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { json, noWriteAhead } from '../hostile-answers.ts';
import { DEADLINES, NOBODY, refusal, remoteRail, spent } from '../remote.ts';
import { PRICE_UNITS } from '../signing.ts';
import { openStage, type Stage } from '../stage.ts';

type Rail = PaymentRail & { close(): Promise<void> };

describe('facilitators behind one rail', () => {
  let stage: Stage;
  let first: HostileFacilitator;
  let second: HostileFacilitator;
  const open: Rail[] = [];

  before(async () => {
    stage = await openStage();
    first = await startHostileFacilitator(stage.terms.network);
    second = await startHostileFacilitator(stage.terms.network);
  });
  beforeEach(() => first.script({}));
  after(async () => {
    for (const rail of open) await rail.close();
    await Promise.all([first, second].map((facilitator) => facilitator.stop()));
    await stage.close();
  });

  const railOver = (urls: readonly string[], deps: Partial<Parameters<typeof remoteRail>[1]> = {}): Rail => {
    const rail = remoteRail(urls, { network: stage.terms.network, chain: stage.chain, deadlines: DEADLINES, ...deps });
    open.push(rail);
    return rail;
  };
  const both = (deps?: Parameters<typeof railOver>[1]): Rail => railOver([first.url, second.url], deps);
  const settle = (rail: Rail, proof: Proof) => rail.settle(proof, stage.offer, noWriteAhead);
  const payer = () => stage.actors.buyer(2n * PRICE_UNITS);

  it('are ready while one of them is, and name those that are not', async () => {
    const nobodyHost = new URL(NOBODY).host;
    assert.equal(await both().check(), undefined);
    const one = await railOver([NOBODY, second.url]).check();
    assert.equal(one?.found, 'degraded');
    assert.match(one?.cause ?? '', new RegExp(`^${nobodyHost}: ECONNREFUSED`));
    first.script({ supported: () => ({ kind: 'hang' }) });
    const begun = performance.now();
    const hanging = await both().check();
    assert.deepEqual([hanging?.found, hanging?.cause.startsWith(new URL(first.url).host)], ['degraded', true]);
    assert.ok(performance.now() - begun < 1_500, 'a look of the monitor takes 1 s');
    assert.equal((await railOver([NOBODY, 'http://127.0.0.1:10']).check())?.found, 'unreachable');
  });

  it('cannot replace the node, unless their word is enough', async () => {
    const rpc = createRpc(NOBODY);
    const chain = createChain(rpc);
    assert.equal((await both({ chain }).check())?.found, 'unreachable');
    assert.equal((await both({ chain, confirm: 'facilitator' }).check())?.found, 'degraded');
    await rpc.close();
  });

  it('settle by a well-formed claim, and by no other answer, when their word is enough', async () => {
    const rail = railOver([first.url], { confirm: 'facilitator', deadlines: { ...DEADLINES, confirmMs: 50 } });
    const { account, proof } = await payer();
    const claim = { kind: 'settled', evidence: 'claim', transaction: INVENTED_TRANSACTION };
    assert.deepEqual(await settle(rail, proof), claim);
    assert.equal(
      await stage.local.balanceOf(account.address),
      2n * PRICE_UNITS,
      'nothing moved, the merchant chose to believe',
    );
    for (const answer of [refusal, spent, json({}, 500), json({ success: true, transaction: '0x1' })]) {
      first.script({ settle: () => answer });
      assert.equal((await settle(rail, proof)).kind, 'uncertain');
    }
    const transaction = await stage.actors.submit(proof);
    assert.deepEqual(await settle(rail, proof), { kind: 'settled', evidence: 'logs', transaction });
  });

  it('that say "pending" are waited for: the chain is watched until the transaction is mined', async () => {
    const { account, proof } = await payer();
    const shown: string[] = [];
    const chain: Chain = {
      ...stage.chain,
      async readEvidence(query, deadlineMs) {
        const evidence = await stage.chain.readEvidence(query, deadlineMs);
        shown.push(evidence.kind);
        if (shown.length === 2) await stage.actors.mine();
        return evidence;
      },
    };
    let transaction = '';
    const { network } = stage.terms;
    first.script({
      settle: async () => {
        transaction = await stage.actors.broadcast(proof);
        return json({ success: false, errorReason: 'settlement_pending', transaction, network });
      },
    });
    const settlement = await settle(both({ chain }), proof);
    assert.deepEqual(settlement, { kind: 'settled', evidence: 'logs', transaction });
    assert.deepEqual(shown, ['open', 'open', 'paid']);
    assert.equal(await stage.local.balanceOf(account.address), PRICE_UNITS);
  });
});
