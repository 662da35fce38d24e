import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { startChain } from '../../tools/local-world/chain.ts';
import { authorize, nowSeconds, sign, termsFor } from '../payments/x402/signing.ts';
import { chainActors, type Fault, startFaultyNode } from '../payments/x402/stage.ts';
import type { ConfigObject } from '../support/config.ts';
import { until } from '../support/program.ts';
import { receiptWhen } from '../support/records.ts';
import { bring, failure } from './bring.ts';
import {
  CITY,
  FAR_CHAIN_ID,
  type FarBuyer,
  moves,
  OFFERS,
  openTwoChains,
  priceOf,
  RESOURCE,
  type TwoChains,
} from './two-chains.ts';

const NOTHING = [0n, 0n, 0n];
const REMOVED = { offered: false };

const ends = new AsyncDisposableStack();
let stand: TwoChains;
let buyer: FarBuyer;
/** Of the node of the far chain. */
let fault: Fault = 'pass';
before(async () => {
  const far = await startChain(0, undefined, FAR_CHAIN_ID);
  const node = await startFaultyNode(far.rpcUrl, () => fault);
  stand = await openTwoChains(ends, { far, rpcUrls: [undefined, node.url, node.url] });
  ends.defer(() => node.stop());
  buyer = await stand.buyer();
});
beforeEach(() => use());
after(() => ends.disposeAsync());

/** Reloads with changes of the entries. */
function use(...changes: readonly ConfigObject[]): void {
  stand.gateway.reload({ payments: stand.payments(...changes) });
}

const challenge = async (...asked: Parameters<TwoChains['ask']>): Promise<PaymentRequired> =>
  (await stand.ask(...asked)).payment.envelope;

/** Brings a payment, with changes of what it accepts. */
function bringPayment(payment: PaymentPayload, accepted: object = {}, resource = RESOURCE, input: object = CITY) {
  const changed = { ...payment, accepted: { ...payment.accepted, ...accepted } };
  return bring(stand.gateway, resource, input, { proof: encodePaymentSignatureHeader(changed) });
}

/** A payment that this buyer signs by hand for an offer: with this nonce, or valid as long. */
async function signedFor(
  document: PaymentRequired,
  at: number,
  changes: Parameters<typeof authorize>[2],
): Promise<PaymentPayload> {
  const accepted: PaymentRequirements = document.accepts[at] ?? assert.fail();
  const { chain } = stand.places[at] ?? assert.fail();
  const authorization = authorize(buyer.account.address, accepted as never, changes);
  const signature = await sign(buyer.account, authorization, termsFor(chain.token, chain.chainId));
  const { resource, extensions } = document;
  return { x402Version: 2, resource, accepted, payload: { signature, authorization }, extensions } as PaymentPayload;
}

const tokenAt = (at: number): string => stand.places[at]?.chain.token.address ?? assert.fail();

function reasonIn(bytes: Buffer): { readonly reason: string; readonly message: string } {
  return JSON.parse(bytes.toString()).error ?? assert.fail(bytes.toString());
}

/** The sentence of a refused proof, which moved nothing. */
async function refused(work: () => ReturnType<typeof bring>, reason: string): Promise<string> {
  let words = '';
  await moves(stand, buyer, NOTHING, async () => {
    const { status, bytes } = await work();
    assert.equal(status, 402, bytes.toString());
    const error = reasonIn(bytes);
    assert.equal(error.reason, reason, error.message);
    words = error.message;
  });
  return words;
}

describe('an entry that is offered no more', () => {
  for (const at of [0, 1, 2])
    it(`${at} leaves accepts, and is paid by the proofs of its last 402s, with their token and without`, async () => {
      const document = await challenge();
      const { extensions: _token, ...bare } = await buyer.pay(document, at);
      const payments = [await buyer.pay(document, at), bare as PaymentPayload];
      use(...OFFERS.map((_offer, other) => (other === at ? REMOVED : {})));
      assert.deepEqual((await challenge()).accepts, document.accepts.toSpliced(at, 1));
      for (const payment of payments)
        await moves(stand, buyer, priceOf(at), async () => {
          const { status, payment: response, bytes } = await bringPayment(payment);
          assert.deepEqual([status, response?.network], [200, OFFERS[at]?.[0]], bytes.toString());
        });
    });

  it('is refused when its last 402s have ended', async () => {
    const short = { maxTimeoutSeconds: 10 };
    use(short, short, short);
    const document = await challenge();
    // Valid for longer than the 402.
    const late = { validBefore: String(nowSeconds() + 300) };
    const proofs = await Promise.all([0, 2].map((at) => signedFor(document, at, late)));
    const other = await signedFor(document, 1, late);
    use({ ...short, ...REMOVED }, short, { ...short, ...REMOVED });
    for (const proof of proofs) {
      // The signature is looked at last: it is the fault while the offer stands.
      const { signature } = other.payload;
      const forged = { ...proof, payload: { ...proof.payload, signature } };
      await until('the 402 has ended', async () => {
        const { bytes } = await bringPayment(forged);
        return reasonIn(bytes).reason !== 'invalid_exact_evm_payload_signature';
      });
      const words = await refused(() => bringPayment(proof), 'invalid_payment_requirements');
      assert.match(words, /accepted must be the entry of accepts that is offered now/);
    }
  });

  it('has its purchases collected by their buyer', async () => {
    const input = { failures: 1 };
    const payment = await buyer.pay(await challenge('flaky', input), 1);
    const units = [0n, 1_000n, 0n];
    await moves(stand, buyer, units, async () => {
      const first = await bringPayment(payment, {}, 'flaky', input);
      failure(first, 502, 'BACKEND_ERROR');
      use({}, REMOVED);
      const second = await bringPayment(payment, {}, 'flaky', input);
      assert.deepEqual([second.status, second.payment?.network], [200, 'eip155:1337'], second.bytes.toString());
    });
  });

  it('has its open settlements reconciled, and delivers them to their buyer', async () => {
    const { facilitator, gateway } = stand;
    const payment = await buyer.pay(await challenge(), 1);
    await using back = new AsyncDisposableStack();
    back.defer(() => facilitator.script(stand.relayed));
    // The money moves, and neither facilitator nor node tell it.
    facilitator.script({
      ...stand.relayed,
      async settle(call) {
        await stand.relayed.settle?.(call);
        fault = 'reset';
        return { kind: 'reset' };
      },
    });
    await moves(stand, buyer, priceOf(1), async () => {
      const first = await bringPayment(payment);
      failure(first, 502, 'PAYMENT_SETTLEMENT_FAILED');
      use({}, REMOVED, REMOVED);
      fault = 'pass';
      await until('the reconciler has it', async () => {
        const answer = await gateway.operator(`/api/events?requestId=${first.requestId}`);
        return (await answer.text()).includes('payment.settled');
      });
      const second = await bringPayment(payment);
      assert.deepEqual([second.status, second.payment?.network], [200, 'eip155:1337'], second.bytes.toString());
    });
  });

  for (const [what, changed] of [
    ['the price of the first has changed', { TUSD: '0.02', EURC: '0.009' }],
    ['its own price has', { TUSD: '0.01', EURC: '0.02' }],
  ] as const)
    it(`is the token of a buyer's secret still where ${what}`, async () => {
      const payment = await buyer.pay(await challenge(), 2);
      stand.gateway.reload({
        payments: stand.payments(),
        resources: { [RESOURCE]: { pricing: { amount: undefined, currency: undefined, amounts: changed } } },
      });
      await moves(stand, buyer, priceOf(2), async () => {
        const first = await bringPayment(payment);
        assert.equal(first.status, 200, first.bytes.toString());
        await receiptWhen(stand.gateway, first.requestId, true);
        const again = await bringPayment(payment);
        assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
      });
    });
});

describe('a proof for one of several networks', () => {
  it('collects its own purchase, although the other network knows its payer and nonce', async () => {
    const input = { failures: 1 };
    const nonce = `0x${'5f'.repeat(32)}`;
    const [near, far] = await Promise.all(
      [0, 1].map(async (at) => signedFor(await challenge('flaky', input), at, { nonce })),
    );
    assert.ok(near !== undefined && far !== undefined);
    await moves(stand, buyer, [1_000n, 1_000n, 0n], async () => {
      for (const payment of [near, far]) failure(await bringPayment(payment, {}, 'flaky', input), 502, 'BACKEND_ERROR');
      // No present offer is accepted, so the record alone answers.
      const changed = { maxTimeoutSeconds: 3_600 };
      for (const [at, payment] of [near, far].entries()) {
        const { status, payment: response, bytes } = await bringPayment(payment, changed, 'flaky', input);
        assert.deepEqual([status, response?.network], [200, OFFERS[at]?.[0]], bytes.toString());
      }
    });
  });

  it('is refused where it names a network or an asset that it was not signed for', async () => {
    const document = await challenge();
    const [near, far, euro] = document.accepts;
    assert.ok(near !== undefined && far !== undefined && euro !== undefined);
    const settled = stand.facilitator.calls.filter(({ path }) => path === '/settle').length;
    const recipient = 'invalid_exact_evm_payload_recipient_mismatch';
    const requirements = 'invalid_payment_requirements';
    for (const [signed, accepted, reason] of [
      [0, far, recipient],
      [1, near, recipient],
      [1, euro, recipient],
      [0, { ...far, payTo: near.payTo }, requirements],
      [0, { network: far.network }, requirements],
      [2, { network: near.network }, requirements],
      [0, { asset: euro.asset }, requirements],
      [1, { asset: euro.asset }, requirements],
      [1, { network: 'eip155:8453' }, 'invalid_network'],
      [1, { maxTimeoutSeconds: 3_600 }, requirements],
      [2, { maxTimeoutSeconds: 3_600 }, requirements],
      [1, { amount: '1' }, requirements],
      [2, { amount: '1' }, requirements],
    ] as const) {
      const payment = await buyer.pay(document, signed);
      const words = await refused(() => bringPayment(payment, accepted), reason);
      if (reason === 'invalid_network')
        for (const [at, [network]] of OFFERS.entries())
          assert.ok(words.includes(`${tokenAt(at)} on ${network}`), words);
    }
    // All that the other offer says is signed, in the wrong domain.
    for (const [at, other] of [
      [0, 1],
      [1, 0],
      [1, 2],
      [2, 1],
    ] as const) {
      const { payTo: to = '', amount: value = '' } = document.accepts[other] ?? {};
      const payment = await signedFor(document, at, { to, value });
      await refused(() => bringPayment(payment, document.accepts[other]), 'invalid_exact_evm_payload_signature');
    }
    assert.equal(stand.facilitator.calls.filter(({ path }) => path === '/settle').length, settled);
  });

  it('reaches the facilitator of its network alone', async () => {
    const asked = () => stand.facilitator.calls.filter(({ path }) => path !== '/supported');
    const before = asked().length;
    const document = await challenge();
    assert.equal((await bringPayment(await buyer.pay(document, 0))).status, 200);
    assert.equal(asked().length, before);
    for (const at of [1, 2]) assert.equal((await bringPayment(await buyer.pay(document, at))).status, 200);
    assert.deepEqual(
      asked()
        .slice(before)
        .map(({ path }) => path),
      ['/verify', '/settle', '/verify', '/settle'],
    );
    for (const { body } of asked()) assert.doesNotMatch(JSON.stringify(body), /"network":"eip155:31337"/);
  });

  it('that comes to nothing is answered with its own network and price', async () => {
    const { facilitator } = stand;
    const { chain } = stand.places[2] ?? assert.fail();
    const payment = await buyer.pay(await challenge(), 2);
    const terms = termsFor(chain.token, chain.chainId);
    // The payer takes the authorization back before its transaction.
    await using back = new AsyncDisposableStack();
    back.defer(() => facilitator.script(stand.relayed));
    facilitator.script({
      ...stand.relayed,
      async settle() {
        await chainActors(chain, terms).cancel(buyer.account, { payload: payment } as never);
        return {
          kind: 'json',
          body: { success: false, errorReason: 'invalid_exact_evm_nonce_already_used', network: '', transaction: '' },
        };
      },
    });
    await moves(stand, buyer, NOTHING, async () => {
      const { status, payment: response, bytes } = await bringPayment(payment);
      assert.deepEqual(
        [status, response?.success, response?.network, response?.amount, response?.currency],
        [402, false, 'eip155:1337', '0.009', 'EURC'],
        bytes.toString(),
      );
    });
  });
});
