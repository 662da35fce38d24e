import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, type Hex, keccak256, stringToBytes } from 'viem';
import { amountRange, budget, type Constraint, recurrence, reference } from '../../tools/mandate/maker/constraints.ts';
import { TOKEN_TYPES } from '../world/authorization.ts';
import { type Body, CHANNELS } from './mandate-channels.ts';
import { INPUT, type MandateTestbed, now, openMandateTestbed, PRICE_UNITS, TOOL } from './mandate-testbed.ts';
import { decode, encode } from './proofs.ts';

/** Any number of reports, for two and a half times their price. */
const recurring = (openCheckout: string): readonly Constraint[] => [
  amountRange('TUSD', 10_000),
  budget('TUSD', 0.025),
  recurrence('ON_DEMAND'),
  reference(openCheckout),
];

describe('a merchant that wants a payment mandate that is bound to its payment', () => {
  let testbed: MandateTestbed;
  before(async () => {
    testbed = await openMandateTestbed(CHANNELS.http, {
      policy: { paymentMandate: 'required', bindPaymentNonce: true },
    });
  });
  after(() => testbed?.close());

  /** A payment with this nonce, signed with viem alone. */
  const signed = async (asked: Body, nonce: Hex): Promise<string> => {
    const { payload, accepted, ...rest } = decode(await testbed.proofFor(asked));
    const { network, asset, extra } = accepted;
    const { from, to, value, validAfter, validBefore } = payload.authorization as Readonly<Record<string, string>>;
    const signature = await testbed.buyer.account.signTypedData({
      domain: {
        name: String(extra['name']),
        version: String(extra['version']),
        chainId: Number(String(network).split(':')[1]),
        verifyingContract: asset as Address,
      },
      types: TOKEN_TYPES,
      primaryType: 'TransferWithAuthorization',
      message: {
        from: from as Address,
        to: to as Address,
        value: BigInt(value ?? 0),
        validAfter: BigInt(validAfter ?? 0),
        validBefore: BigInt(validBefore ?? 0),
        nonce,
      },
    });
    return encode({ ...rest, accepted, payload: { signature, authorization: { ...payload.authorization, nonce } } });
  };

  it('refuses any other payment of the same payer, and takes the one', async () => {
    const asked = await testbed.challenged();
    const { header: mandate, paymentMandate = '' } = testbed.mandateFor(asked, testbed.pays());
    const before = await testbed.buyer.balance();
    const call = { resourceId: TOOL, input: INPUT, mandate };
    const refused = await testbed.send({ ...call, proof: await testbed.proofFor(asked) });
    const { reason, mandate: which } = refused.body.details ?? {};
    assert.deepEqual([refused.code, reason, which], ['AUTHORIZATION_INVALID', 'payment_binding_mismatch', 'payment']);
    assert.equal(await testbed.buyer.balance(), before);
    const bought = await testbed.send({
      ...call,
      proof: await signed(asked, keccak256(stringToBytes(paymentMandate))),
    });
    assert.equal(bought.code, undefined, bought.raw);
    assert.equal(before - (await testbed.buyer.balance()), PRICE_UNITS);
  });

  it('a budget is spent by what was settled, and by nothing else', async () => {
    const free = await openMandateTestbed(CHANNELS.http);
    try {
      const { mint, profile } = free;
      const wishes = { now: now(), profile, ...free.pays() };
      const open = mint.open({ ...wishes, paymentConstraints: recurring });
      const buy = async (spoil: (proof: string) => string = (proof) => proof) => {
        const asked = await free.challenged();
        const checkoutJwt = asked.authorization?.required[0].checkoutJwt ?? '';
        const mandate = mint.close(open, { ...wishes, checkoutJwt }).header;
        const proof = spoil(await free.proofFor(asked));
        return free.send({ resourceId: TOOL, input: INPUT, proof, mandate });
      };
      const before = await free.buyer.balance();
      assert.equal((await buy()).code, undefined);
      // Unsigned: it is refused before its mandate is looked at, and uses nothing up.
      assert.equal((await buy((proof) => encode({ ...decode(proof), x402Version: 1 }))).code, 'PAYMENT_REQUIRED');
      assert.equal((await buy()).code, undefined);
      const third = await buy();
      assert.deepEqual([third.code, third.body.details?.['reason']], ['AUTHORIZATION_INVALID', 'budget_exceeded']);
      assert.equal(before - (await free.buyer.balance()), 2n * PRICE_UNITS);
    } finally {
      await free.close();
    }
  });
});
