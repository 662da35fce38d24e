import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { PaymentRequired } from '@x402/core/types';
import { startChain } from '../../tools/local-world/chain.ts';
import { authorize, nowSeconds, sign, termsFor } from '../payments/x402/signing.ts';
import { chainActors, type Fault, startFaultyNode } from '../payments/x402/stage.ts';
import type { ConfigObject } from '../support/config.ts';
import { until } from '../support/program.ts';
import { receiptWhen } from '../support/records.ts';
import { type Brought, bring, failure } from './bring.ts';
import { decode, encode, found } from './proofs.ts';
import {
  CITY,
  FAR_CHAIN_ID,
  type FarBuyer,
  OFFERS,
  openTwoChains,
  priceOf,
  RESOURCE,
  type TwoChains,
} from './two-chains.ts';

const NOTHING = [0n, 0n, 0n];
const REMOVED = { offered: false };
const FLAKY = ['flaky', { failures: 1 }] as const;

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
beforeEach(() => {
  use();
  stand.facilitator.script(stand.relayed);
});
after(() => ends.disposeAsync());

/** Reloads with changes of the entries. */
function use(...changes: readonly ConfigObject[]): void {
  stand.gateway.reload({ payments: stand.payments(...changes) });
}

const challenge = async (...asked: Parameters<TwoChains['ask']>): Promise<PaymentRequired> =>
  (await stand.ask(...asked)).payment.envelope;

/** Brings a proof, with changes of what it accepts. */
function bringProof(
  proof: string,
  accepted: object = {},
  [resource, input]: readonly [string, object] = [RESOURCE, CITY],
): Promise<Brought> {
  const payload = decode(proof);
  const changed = encode({ ...payload, accepted: { ...payload.accepted, ...accepted } });
  return bring(stand.gateway, resource, input, { proof: changed });
}

/** A proof that this buyer signs by hand for an offer: with this nonce, or valid as long. */
async function signedFor(
  document: PaymentRequired,
  at: number,
  changes: Parameters<typeof authorize>[2],
): Promise<string> {
  const { chain } = stand.places[at] ?? assert.fail();
  const authorization = authorize(buyer.account.address, document.accepts[at] as never, changes);
  const signature = await sign(buyer.account, authorization, termsFor(chain.token, chain.chainId));
  return encode({ ...decode(await buyer.pay(document, at)), payload: { signature, authorization } });
}

const tokenAt = (at: number): string => stand.places[at]?.chain.token.address ?? assert.fail();

/** Delivered, and paid on the network of this offer. */
function bought({ status, payment, bytes }: Brought, at: number): void {
  assert.deepEqual([status, payment?.network], [200, OFFERS[at]?.[0]], bytes.toString());
}

/** The sentence of a refused proof, which moves nothing. */
async function refused(reason: string, ...brought: Parameters<typeof bringProof>): Promise<string> {
  let words = '';
  await buyer.moves(NOTHING, async () => {
    const { status, bytes } = await bringProof(...brought);
    const { error } = JSON.parse(bytes.toString());
    assert.deepEqual([status, error?.reason], [402, reason], bytes.toString());
    words = error.message;
  });
  return words;
}

describe('an entry that is offered no more', () => {
  for (const at of [0, 1, 2])
    it(`${at} leaves accepts, and is paid by the proofs of its last 402s, with their token and without`, async () => {
      const document = await challenge();
      const proof = await buyer.pay(document, at);
      const bare = found(await buyer.pay(document, at));
      use(...OFFERS.map((_offer, other) => (other === at ? REMOVED : {})));
      assert.deepEqual((await challenge()).accepts, document.accepts.toSpliced(at, 1));
      for (const one of [proof, bare]) await buyer.moves(priceOf(at), async () => bought(await bringProof(one), at));
    });

  it('is refused when its last 402s have ended', async () => {
    const short = { maxTimeoutSeconds: 10 };
    use(short, short, short);
    const document = await challenge();
    // Valid for longer than the 402.
    const late = { validBefore: String(nowSeconds() + 300) };
    const proofs = await Promise.all([0, 2].map((at) => signedFor(document, at, late)));
    const other = decode(await signedFor(document, 1, late));
    use({ ...short, ...REMOVED }, short, { ...short, ...REMOVED });
    for (const proof of proofs) {
      // The signature is looked at last: it is the fault while the offer stands.
      const forged = decode(proof);
      forged.payload.signature = other.payload.signature;
      await until('the 402 has ended', async () => {
        const { bytes } = await bringProof(encode(forged));
        return JSON.parse(bytes.toString()).error.reason !== 'invalid_exact_evm_payload_signature';
      });
      const words = await refused('invalid_payment_requirements', proof);
      assert.match(words, /accepted must be the entry of accepts that is offered now/);
    }
  });

  it('has its purchases collected by their buyer', async () => {
    const proof = await buyer.pay(await challenge(...FLAKY), 1);
    await buyer.moves([0n, 1_000n, 0n], async () => {
      failure(await bringProof(proof, {}, FLAKY), 502, 'BACKEND_ERROR');
      use({}, REMOVED);
      bought(await bringProof(proof, {}, FLAKY), 1);
    });
  });

  it('has its open settlements reconciled, and delivers them to their buyer', async () => {
    const { facilitator, gateway } = stand;
    const proof = await buyer.pay(await challenge(), 1);
    // The money moves, and neither facilitator nor node tell it.
    facilitator.script({
      ...stand.relayed,
      async settle(call) {
        await stand.relayed.settle?.(call);
        fault = 'reset';
        return { kind: 'reset' };
      },
    });
    await buyer.moves(priceOf(1), async () => {
      const first = await bringProof(proof);
      failure(first, 502, 'PAYMENT_SETTLEMENT_FAILED');
      use({}, REMOVED, REMOVED);
      fault = 'pass';
      await until('the reconciler has it', async () => {
        const answer = await gateway.operator(`/api/events?requestId=${first.requestId}`);
        return (await answer.text()).includes('payment.settled');
      });
      bought(await bringProof(proof), 1);
    });
  });

  for (const [what, changed] of [
    ['the price of the first has changed', { TUSD: '0.02', EURC: '0.009' }],
    ['its own price has', { TUSD: '0.01', EURC: '0.02' }],
  ] as const)
    it(`is the token of a buyer's secret still where ${what}`, async () => {
      const proof = await buyer.pay(await challenge(), 2);
      stand.gateway.reload({
        payments: stand.payments(),
        resources: { [RESOURCE]: { pricing: { amount: undefined, currency: undefined, amounts: changed } } },
      });
      await buyer.moves(priceOf(2), async () => {
        const first = await bringProof(proof);
        bought(first, 2);
        await receiptWhen(stand.gateway, first.requestId, true);
        const again = await bringProof(proof);
        assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
      });
    });
});

describe('a proof for one of several networks', () => {
  it('collects its own purchase, although the other network knows its payer and nonce', async () => {
    const nonce = `0x${'5f'.repeat(32)}`;
    const document = await challenge(...FLAKY);
    const proofs = [await signedFor(document, 0, { nonce }), await signedFor(document, 1, { nonce })];
    await buyer.moves([1_000n, 1_000n, 0n], async () => {
      for (const proof of proofs) failure(await bringProof(proof, {}, FLAKY), 502, 'BACKEND_ERROR');
      // No present offer is accepted, so the record alone answers.
      for (const [at, proof] of proofs.entries())
        bought(await bringProof(proof, { maxTimeoutSeconds: 3_600 }, FLAKY), at);
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
      const words = await refused(reason, await buyer.pay(document, signed), accepted);
      if (reason === 'invalid_network')
        for (const [at, [network]] of OFFERS.entries())
          assert.ok(words.includes(`${tokenAt(at)} on ${network}`), words);
    }
    // All that the other offer says is signed, in the wrong domain.
    for (const at of OFFERS.keys())
      for (const [other, accepted] of document.accepts.entries()) {
        if (other === at) continue;
        const { payTo: to, amount: value } = accepted;
        const proof = await signedFor(document, at, { to, value });
        await refused('invalid_exact_evm_payload_signature', proof, accepted);
      }
    assert.equal(stand.facilitator.calls.filter(({ path }) => path === '/settle').length, settled);
  });

  it('reaches the facilitator of its network alone', async () => {
    const asked = () => stand.facilitator.calls.filter(({ path }) => path !== '/supported');
    const before = asked().length;
    const document = await challenge();
    for (const at of OFFERS.keys()) bought(await bringProof(await buyer.pay(document, at)), at);
    const paths = asked().map(({ path }) => path);
    assert.deepEqual(paths.slice(before), ['/verify', '/settle', '/verify', '/settle']);
    for (const { body } of asked()) assert.doesNotMatch(JSON.stringify(body), /"network":"eip155:31337"/);
  });

  it('that comes to nothing is answered with its own network and price', async () => {
    const { chain } = stand.places[2] ?? assert.fail();
    const proof = await buyer.pay(await challenge(), 2);
    const payer = chainActors(chain, termsFor(chain.token, chain.chainId));
    // The payer takes the authorization back before its transaction.
    stand.facilitator.script({
      ...stand.relayed,
      async settle() {
        await payer.cancel(buyer.account, { payload: decode(proof) } as never);
        const errorReason = 'invalid_exact_evm_nonce_already_used';
        return { kind: 'json', body: { success: false, errorReason, network: '', transaction: '' } };
      },
    });
    await buyer.moves(NOTHING, async () => {
      const { status, payment: response, bytes } = await bringProof(proof);
      assert.deepEqual(
        [status, response?.success, response?.network, response?.amount, response?.currency],
        [402, false, 'eip155:1337', '0.009', 'EURC'],
        bytes.toString(),
      );
    });
  });
});
