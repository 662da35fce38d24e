import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ConfigObject } from '../support/config.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { createWalletBuyer, WALLET_FACTORY, type WalletBuyer } from '../support/wallets.ts';

const INPUT = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;

/** The refusal in a 402. */
type Refused = { readonly error: { readonly reason: string; readonly message: string } };

/** Each way money moves, and what it knows of the chain. */
const RAILS = {
  'settled by the gateway itself': { facilitator: 'local', overrides: {} },
  'settled by a facilitator, with a node': { facilitator: 'remote', overrides: {} },
  'settled by a facilitator, without a node': { facilitator: 'remote', overrides: { rpcUrl: undefined } },
  'settled by a facilitator that all signatures are left to': {
    facilitator: 'remote',
    overrides: { rpcUrl: undefined, localSignatureCheck: false },
  },
} as const satisfies Record<string, { readonly facilitator: 'local' | 'remote'; readonly overrides: ConfigObject }>;

for (const [how, { facilitator, overrides }] of Object.entries(RAILS))
  describe(`payers that are contracts, ${how}`, () => {
    const seesWallets = how !== 'settled by a facilitator, without a node';
    const deploys = facilitator === 'remote' && seesWallets;
    /**
     * A wrapper that is not needed any more: the official facilitator does not take it off, the
     * gateway does where it asks the wallet.
     */
    const unwraps = !('localSignatureCheck' in overrides);
    let official: Facilitator | undefined;
    let testbed: Testbed;
    before(async () => {
      testbed = await openTestbed(async (chain) => {
        official = facilitator === 'local' ? undefined : await startFacilitator(chain, { deploysBy: WALLET_FACTORY });
        return {
          facilitator: official === undefined ? { mode: 'local' } : { mode: 'remote', url: official.url },
          overrides: { payments: { x402: overrides } },
        };
      });
    });
    after(async () => {
      await testbed?.close();
      await official?.stop();
    });

    const buys = async (wallet: WalletBuyer, signature: 'plain' | 'wrapped'): Promise<Response> => {
      const { body } = await testbed.quote('market_report', INPUT);
      const proof = await wallet.pay(body.payment.envelope, signature);
      return testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': proof });
    };
    const delivered = async (wallet: WalletBuyer, signature: 'plain' | 'wrapped'): Promise<void> => {
      const [held, earned] = [await testbed.chain.balanceOf(wallet.address), await testbed.income()];
      const answer = await buys(wallet, signature);
      assert.equal(answer.status, 200, await answer.text());
      assert.equal(held - (await testbed.chain.balanceOf(wallet.address)), PRICE_UNITS);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
    };
    const refused = async (wallet: WalletBuyer, signature: 'plain' | 'wrapped', reason: string): Promise<void> => {
      const [earned, executions] = [await testbed.income(), testbed.backend.requests.length];
      const answer = await buys(wallet, signature);
      assert.equal(answer.status, 402);
      const { error } = (await answer.json()) as Refused;
      assert.equal(error.reason, reason);
      assert.deepEqual([await testbed.income(), testbed.backend.requests.length], [earned, executions]);
    };

    it(`a deployed wallet (ERC-1271) ${seesWallets ? 'buys' : 'is refused, as it cannot be verified here'}`, async () => {
      const wallet = await createWalletBuyer(testbed.chain);
      await wallet.deploy();
      if (seesWallets) {
        await delivered(wallet, 'plain');
        await delivered(wallet, 'plain');
        if (unwraps) await delivered(wallet, 'wrapped');
      } else await refused(wallet, 'wrapped', 'contract_signature_not_supported');
    });

    it(`a wallet that is not deployed yet (ERC-6492) ${deploys ? 'buys' : 'is refused with the reason'}`, async () => {
      const wallet = await createWalletBuyer(testbed.chain);
      if (deploys) {
        await delivered(wallet, 'wrapped');
        assert.notEqual(await testbed.chain.request('eth_getCode', [wallet.address, 'latest']), '0x');
        await delivered(wallet, unwraps ? 'wrapped' : 'plain');
      } else
        await refused(
          wallet,
          'wrapped',
          seesWallets ? 'eip6492_factory_not_allowed' : 'contract_signature_not_supported',
        );
    });

    it('a wallet whose owner did not sign is refused', async () => {
      const [wallet, other] = [await createWalletBuyer(testbed.chain), await createWalletBuyer(testbed.chain)];
      await wallet.deploy();
      const { body } = await testbed.quote('market_report', INPUT);
      const [own, foreign] = [await wallet.pay(body.payment.envelope), await other.pay(body.payment.envelope)];
      const [payload, stolen] = [own, foreign].map(
        (proof) => JSON.parse(Buffer.from(proof, 'base64').toString()) as { payload: { signature: string } },
      );
      const forged = { ...payload, payload: { ...payload?.payload, signature: stolen?.payload.signature } };
      const answer = await testbed.gateway.invoke('market_report', INPUT, {
        'payment-signature': Buffer.from(JSON.stringify(forged)).toString('base64'),
      });
      assert.equal(answer.status, 402);
      assert.equal(((await answer.json()) as Refused).error.reason, 'invalid_exact_evm_payload_signature');
    });
  });
