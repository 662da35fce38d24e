/** A gateway with a hostile facilitator, and the rules that hold whatever it answers. */

import assert from 'node:assert/strict';
import type { Hex } from 'viem';
import { decode } from '../../../spec/e2e/proofs.ts';
import { freshAddress } from '../../../spec/payments/x402/signing.ts';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { eventually } from '../../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { transferCall } from '../../../src/payments/x402/evm/eip3009.ts';
import type { Chain } from '../../../tools/local-world/chain.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Channel, type Seen } from '../payments/channels.ts';

export const INPUT = { city: 'Berlin' };
/** What `market_report` costs, base units. */
export const PRICE_UNITS = 10_000n;
/** The token of the facilitator, which must not be disclosed. */
export const BEARER = 'bearer-canary-7d20';

/** A gateway with a hostile facilitator, on a real chain. */
export interface LiarStage {
  readonly testbed: Testbed;
  /**
   * A proof of a new payer, and its nonce; new, because one payer may have only a few settlements
   * under way.
   */
  sign(): Promise<{ readonly proof: string; readonly nonce: string }>;
  /** Brings a proof over the channel with this number. */
  bring(proof: string, channel: number | Channel): Promise<Seen>;
  /** Moves the money as a stranger or an honest facilitator would; resolves to the transaction. */
  submit(proof: string): Promise<Hex>;
  /** Whether the chain shows the payment. */
  paid(nonce: string): Promise<boolean>;
  /** Brings the proof until its answer is delivered, now or before. */
  collect(proof: string, channel: number): Promise<void>;
  /** All events, receipts and log lines. */
  sinks(): Promise<string>;
  close(): Promise<void>;
}

/** @param url Of the facilitator. */
export async function openLiarStage(url: string): Promise<LiarStage> {
  const facilitator = { auth: { type: 'bearer', token: BEARER } };
  const testbed = await openTestbed({
    facilitator: { mode: 'remote', url },
    // Buyers, facilitators and chain take the same core: that is no overload of the gateway.
    busy: () => 0,
    overrides: { ...ALL_CHANNELS, payments: { x402: { facilitator } } },
  });
  const { chain, gateway } = testbed;
  const bring = (proof: string, channel: number | Channel): Promise<Seen> => {
    const over = typeof channel === 'number' ? (CHANNELS[channel % CHANNELS.length] ?? 'http') : channel;
    return buy(gateway.url, over, { resourceId: 'market_report', input: INPUT, proof });
  };
  return {
    testbed,
    bring,
    async sign() {
      const buyer = await createBuyer(chain);
      const { body } = await testbed.quote('market_report', INPUT);
      const proof = await buyer.pay(body.payment.envelope);
      return { proof, nonce: nonceOf(proof) };
    },
    submit: (proof) => submit(chain, proof),
    async paid(nonce) {
      const topics = [AUTHORIZATION_USED, null, nonce];
      const logs = await chain.request('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', topics }]);
      return (logs as readonly unknown[]).length > 0;
    },
    async collect(proof, channel) {
      const last = await eventually(async () => {
        const seen = await bring(proof, channel);
        return seen.outcome === 'delivered' || seen.state === 'delivered' ? seen : undefined;
      }, 'what was paid for');
      assert.ok(last.outcome === 'delivered' || last.code === 'PAYMENT_REPLAYED');
    },
    async sinks() {
      const pages = ['/api/events?limit=500', '/api/receipts?limit=500'].map(async (path) =>
        (await gateway.operator(path)).text(),
      );
      return [...(await Promise.all(pages)), ...gateway.logLines].join('\n');
    },
    close: () => testbed.close(),
  };
}

export function nonceOf(proof: string): string {
  return String(decode(proof).payload.authorization['nonce']);
}

export function payerOf(proof: string): string {
  return String(decode(proof).payload.authorization['from']);
}

/** Topic of `AuthorizationUsed(address,bytes32)`. */
const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';

/** Sends the authorization of a proof to the token, from an unknown address. */
export async function submit(chain: Chain, proof: string): Promise<Hex> {
  const { authorization, signature } = decode(proof).payload;
  const from = freshAddress();
  await chain.fundGas(from);
  const call = transferCall(authorization as never, String(signature), 'account');
  return chain.send(from, chain.token.address, call as Hex);
}

/** Failures after which the same proof is sent again. */
const KEEP_THE_PROOF: ReadonlySet<string | undefined> = new Set([
  'PAYMENT_SETTLEMENT_FAILED',
  'PAYMENT_PROVIDER_UNAVAILABLE',
  'GATEWAY_BUSY',
]);

/**
 * Holds for every answer to a proof: a delivery only for a payment, a 402 only when no money moved,
 * and any other answer asks the buyer to keep its proof.
 */
export function assertHonest(seen: Seen, paid: boolean): void {
  const what = `${seen.outcome} ${seen.code} while ${paid ? 'paid' : 'unpaid'}`;
  assert.ok(!seen.everything.includes(BEARER), 'the token of the facilitator is disclosed');
  if (seen.outcome === 'delivered') assert.ok(paid, what);
  else if (seen.outcome === 'asked') assert.ok(!paid, what);
  else assert.ok(KEEP_THE_PROOF.has(seen.code), what);
}
