import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { AssetMismatch } from '../../../src/payments/x402/chain/asset-check.ts';
import { createRail } from '../../../src/payments/x402/create-rail.ts';
import { transferCall } from '../../../src/payments/x402/evm/eip3009.ts';
import { refundAuthorization } from '../../../src/payments/x402/refund/transfer.ts';
import { decodeProof, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import type { X402Config } from '../../../src/payments/x402/wire/settings.ts';
import { type Chain as LocalChain, startChain } from '../../../tools/local-world/chain.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../../support/hostile-facilitator.ts';
import {
  entryOf,
  freshAccount,
  freshAddress,
  genuineProof,
  nowSeconds,
  offerFor,
  PRICE_UNITS,
  payloadFor,
  RESOURCE_URL,
  sign,
  type Terms,
  termsFor,
} from './signing.ts';
import { chainActors, type Fault, startFaultyNode } from './stage.ts';

const silentLog = { info: () => undefined, warn: () => undefined };

describe('opening the rail', () => {
  let local: LocalChain;
  let approving: HostileFacilitator;
  let terms: Terms;

  before(async () => {
    local = await startChain();
    terms = termsFor(local.token, local.chainId);
    approving = await startHostileFacilitator(terms.network);
  });
  after(async () => {
    await approving.stop();
    await local.stop();
  });

  const config = (changes: Partial<X402Config> = {}): X402Config => {
    const facilitator = { mode: 'local', privateKey: local.relayerKey } as const;
    return entryOf(terms, { rpcUrls: [local.rpcUrl], facilitator, ...changes });
  };

  it('gives a rail that examines, settles and is ready', async () => {
    const rail = await createRail(config(), silentLog);
    assert.equal(rail.facilitator, 'local');
    assert.equal(await rail.check(), undefined);
    const { proof } = await chainActors(local, terms).buyer();
    const settlement = await rail.settle(proof, offerFor(terms), async () => undefined);
    assert.equal(settlement.kind, 'settled');
    await rail.close();
  });

  it('shows whether a payment was sent back', async () => {
    const payee = freshAccount();
    const paid = { ...terms, payTo: payee.address };
    const rail = await createRail(config(paid), silentLog);
    const buyer = freshAccount();
    await local.mint(buyer.address, PRICE_UNITS);
    const proof = await genuineProof(buyer, paid);
    const offer = offerFor(paid);
    await rail.settle(proof, offer, async () => undefined);
    assert.equal(await rail.sentBack?.(proof, offer), false);
    const { payId, payload } = proof;
    const { from: payer, value: units } = payload.payload.authorization;
    const back = refundAuthorization(
      { payId, asset: paid.asset, payee: payee.address, payer, units },
      nowSeconds() + 60,
    );
    const signature = await sign(payee, back, paid);
    const sender = freshAddress();
    await local.fundGas(sender);
    await local.send(sender, paid.asset, transferCall(back, signature, 'account') as `0x${string}`);
    assert.equal(await rail.sentBack?.(proof, offer), true);
    await rail.close();
  });

  it('refuses to open on an asset that has another name on the chain', async () => {
    const opening = createRail(config(termsFor({ ...local.token, name: 'USDC' })), silentLog);
    await assert.rejects(
      opening,
      (error: unknown) => error instanceof AssetMismatch && /assetName/.test(error.message),
    );
  });

  it('opens while the node is down, and is not ready when it comes back with another asset', async () => {
    let fault: Fault = 'fail';
    const node = await startFaultyNode(local.rpcUrl, () => fault);
    const rail = await createRail(config({ assetDecimals: 18, rpcUrls: [node.url] }), silentLog);
    assert.match((await rail.check())?.cause ?? '', /no JSON-RPC answer/);
    fault = 'pass';
    assert.match((await rail.check())?.cause ?? '', /assetDecimals is 6, not 18/);
    await rail.close();
    await node.stop();
  });

  it('lets no facilitator overrule a local check, and does not even ask it', async () => {
    const facilitator = { mode: 'remote', url: approving.url, auth: { type: 'none' }, fallbacks: [] } as const;
    const rail = await createRail(config({ facilitator }), silentLog);
    const account = freshAccount();
    const good = await payloadFor(account, terms);
    const expired = await payloadFor(account, terms, { validBefore: String(nowSeconds() - 1) });
    const forged = { ...good, payload: { ...good.payload, signature: expired.payload.signature } };
    const outcomes = [];
    for (const payload of [good, expired, forged]) {
      const decoded = decodeProof(encodeProof(payload));
      assert.ok(decoded.kind === 'decoded');
      const offer = offerFor(terms);
      const examination = rail.examine({ decoded, offer, resourceUrl: RESOURCE_URL, nowMs: Date.now() });
      const signature = await examination.checkSignature();
      const { kind } = signature.kind === 'unproven' ? await signature.prove() : signature;
      outcomes.push(examination.refusal?.reason ?? kind);
    }
    assert.deepEqual(outcomes, ['genuine', 'invalid_exact_evm_payload_authorization_valid_before', 'refused']);
    assert.equal(approving.calls.length, 0);
    await rail.close();
  });

  for (const [what, other] of Object.entries({
    network: { network: 'eip155:1337' },
    asset: { asset: `0x${'3'.repeat(40)}` },
  }))
    it(`leaves a payment of another ${what} as it is: no facilitator is sent it`, async () => {
      const facilitator = { mode: 'remote', url: approving.url, auth: { type: 'none' }, fallbacks: [] } as const;
      const rail = await createRail(config({ facilitator }), silentLog);
      const asked = approving.calls.length;
      const proof = await genuineProof(freshAccount(), terms);
      const offer = { ...offerFor(terms), ...other };
      const answers = [
        await rail.verify(proof, offer),
        await rail.settle(proof, offer, async () => undefined),
        await rail.reconcile(proof, offer),
      ];
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ['unavailable', 'uncertain', 'unknown'],
      );
      assert.equal(approving.calls.length, asked);
      await rail.close();
    });
});
