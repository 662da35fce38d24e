import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe } from 'node:test';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { freshAddress } from '../../../spec/payments/x402/signing.ts';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { type Facilitator, startFacilitator } from '../../../spec/support/facilitator.ts';
import {
  type HostileFacilitator,
  relayTo,
  type Script,
  startHostileFacilitator,
} from '../../../spec/support/hostile-facilitator.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { createWalletBuyer } from '../../../spec/support/wallets.ts';
import { attack, times } from '../catalogue.ts';
import { ALL_CHANNELS, buy, type Seen } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
/** More than the connections to a facilitator. */
const SLOW_PROOFS = 80;
/** At most a hundred a second are judged, and their window is two minutes. */
const GARBAGE = times(400, 4_000);
/** Forged proofs in flight. */
const RUNNERS = 20;
/** How long a purchase may take during a flood, milliseconds: two cores run all processes. */
const OTHERS_MS = 2_000;

describe('a flood of proofs', () => {
  let liar: HostileFacilitator;
  let official: Facilitator;
  let testbed: Testbed;
  let flooder: Buyer;
  before(async () => {
    liar = await startHostileFacilitator('eip155:31337');
    testbed = await openTestbed({ facilitator: { mode: 'remote', url: liar.url }, overrides: ALL_CHANNELS });
    official = await startFacilitator(testbed.chain);
    flooder = await createBuyer(testbed.chain, 10_000_000n);
    const slow =
      (then: Script): Script =>
      (call) =>
        JSON.stringify(call.body).toLowerCase().includes(flooder.address.toLowerCase()) ? { kind: 'hang' } : then(call);
    liar.script({ verify: slow(relayTo(official.url)), settle: slow(relayTo(official.url)) });
  });
  after(async () => {
    await testbed.close();
    await Promise.all([liar.stop(), official.stop()]);
  });

  const proofs = (buyer: Buyer, count: number): Promise<readonly string[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const { body } = await testbed.quote(RESOURCE.resourceId, RESOURCE.input);
        return buyer.pay(body.payment.envelope);
      }),
    );
  const timed = async (call: Promise<Seen>): Promise<readonly [Seen, number]> => {
    const begun = performance.now();
    return [await call, performance.now() - begun];
  };

  attack(
    'X18',
    'valid proofs of one payer whose settlements hang: all other payers still buy',
    async () => {
      const slow = await proofs(flooder, SLOW_PROOFS);
      const [honest] = await proofs(testbed.buyer, 1);
      const flood = slow.map((proof) => buy(testbed.gateway.url, 'http', { ...RESOURCE, proof }));
      await eventuallyAsked(liar);
      const [free] = await timed(buy(testbed.gateway.url, 'http', { resourceId: 'cities' }));
      assert.equal(free.outcome, 'delivered');
      const [bought, tookMs] = await timed(buy(testbed.gateway.url, 'http', { ...RESOURCE, proof: honest ?? '' }));
      const answers = await Promise.all(flood);
      for (const answer of answers) {
        assert.ok(isHonestNo(answer), answer.everything);
      }
      assert.equal(bought.outcome, 'delivered', bought.everything);
      assert.ok(tookMs < OTHERS_MS, `the other buyer waited ${Math.round(tookMs)} ms`);
    },
    { timeout: 30_000 },
  );

  attack(
    'X19',
    'forged proofs of invented payers: no facilitator is asked, and free calls go on',
    async (context) => {
      const payload = decode(await testbed.proof(RESOURCE.resourceId, RESOURCE.input));
      const forged = Array.from({ length: GARBAGE }, () => {
        const authorization = { ...payload.payload.authorization, from: freshAddress() };
        return encode({ ...payload, payload: { ...payload.payload, authorization } });
      });
      const begun = performance.now();
      let free = 0;
      let slowestMs = 0;
      const bring = async (runner: number): Promise<void> => {
        for (let n = runner; n < forged.length; n += RUNNERS) {
          const seen = await buy(testbed.gateway.url, 'http', { ...RESOURCE, proof: forged[n] ?? '' });
          assert.ok(seen.reason === 'invalid_exact_evm_payload_signature' || isHonestNo(seen), seen.everything);
        }
      };
      const flood = Promise.all(Array.from({ length: RUNNERS }, (_, runner) => bring(runner))).then(() => undefined);
      let running = true;
      void flood
        .finally(() => {
          running = false;
        })
        .catch(() => undefined);
      while (running) {
        const [seen, tookMs] = await timed(buy(testbed.gateway.url, 'http', { resourceId: 'cities' }));
        assert.ok(seen.outcome === 'delivered' || isHonestNo(seen), seen.everything);
        free += 1;
        slowestMs = Math.max(slowestMs, tookMs);
      }
      await flood;
      const perSecond = Math.round((GARBAGE / (performance.now() - begun)) * 1_000);
      context.diagnostic(
        `${perSecond} forged proofs a second, ${free} free calls, slowest ${Math.round(slowestMs)} ms`,
      );
      // One caller of free calls has more turns than one of those who bring proofs.
      assert.ok(free > GARBAGE / RUNNERS, `${free} free calls`);
      const nonce = String(payload.payload.authorization['nonce']);
      assert.ok(!liar.calls.some(({ body }) => JSON.stringify(body ?? '').includes(nonce)), 'a facilitator call');
    },
    { timeout: 120_000 },
  );
});

/** A retryable 503 that has cost nothing: allowed under load, and never sent without it. */
function isHonestNo({ code }: Seen): boolean {
  return code === 'GATEWAY_BUSY' || code === 'PAYMENT_PROVIDER_UNAVAILABLE' || code === 'RATE_LIMITED';
}

/** Resolves when a request waits at the facilitator on each of its connections. */
async function eventuallyAsked(liar: HostileFacilitator): Promise<void> {
  const deadline = performance.now() + 2_000;
  while (liar.calls.filter(({ path }) => path === '/verify').length < 64 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Connections that send garbage, each as fast as it is answered. */
const CONNECTIONS = times(24, 48);
const PURCHASES = 12;
/** How many of them must succeed, and each within how many milliseconds. */
const AT_LEAST = 11;
const WITHIN_MS = 3_000;
/** Bytes of a signature that no key can produce. */
const GARBAGE_BYTES = 200;

/** The services that can verify a signature of a contract. */
const WITNESSES = {
  'a node': {},
  'no service': { rpcUrl: undefined },
  'the facilitator alone': { rpcUrl: undefined, localSignatureCheck: false },
} as const;

for (const [witness, x402] of Object.entries(WITNESSES))
  describe(`garbage signatures in the name of a payer, checked by ${witness}`, () => {
    let facilitator: HostileFacilitator;
    let official: Facilitator;
    let testbed: Testbed;
    before(async () => {
      facilitator = await startHostileFacilitator('eip155:31337');
      testbed = await openTestbed({
        facilitator: { mode: 'remote', url: facilitator.url },
        overrides: { payments: { x402 } },
      });
      official = await startFacilitator(testbed.chain);
      facilitator.script({ verify: relayTo(official.url), settle: relayTo(official.url) });
    });
    after(async () => {
      await testbed?.close();
      await Promise.all([facilitator?.stop(), official?.stop()]);
    });

    /** Purchases of a payer, one after the other, while garbage proofs name it as payer. */
    const underFire = async (payer: string, pay: (required: unknown) => Promise<string>) => {
      const { body } = await testbed.quote(RESOURCE.resourceId, RESOURCE.input);
      const sample = decode(await pay(body.payment.envelope));
      /**
       * The nonces of its own purchases: garbage with the same nonce must not block them either.
       */
      const nonces: unknown[] = [];
      const garbage = (): string => {
        const nonce = nonces.at(-1) ?? `0x${randomBytes(32).toString('hex')}`;
        const authorization = { ...sample.payload.authorization, from: payer, nonce };
        const signature = `0x${randomBytes(GARBAGE_BYTES).toString('hex')}`;
        return encode({ ...sample, payload: { authorization, signature } });
      };
      let running = true;
      let sent = 0;
      const seen = new Map<string, number>();
      const fire = async (): Promise<void> => {
        while (running) {
          const { reason, code, outcome } = await buy(testbed.gateway.url, 'http', { ...RESOURCE, proof: garbage() });
          assert.notEqual(outcome, 'delivered');
          const verdict = reason ?? code ?? outcome;
          seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
          sent += 1;
        }
      };
      const fires = Array.from({ length: CONNECTIONS }, fire);
      const slowest: number[] = [];
      const bought: string[] = [];
      let delivered = 0;
      try {
        while (sent < CONNECTIONS) await new Promise((resolve) => setTimeout(resolve, 5));
        for (let n = 0; n < PURCHASES; n += 1) {
          const quote = await testbed.quote(RESOURCE.resourceId, RESOURCE.input);
          const proof = await pay(quote.body.payment.envelope);
          nonces.push(decode(proof).payload.authorization['nonce']);
          const begun = performance.now();
          const { outcome, everything } = await buy(testbed.gateway.url, 'http', { ...RESOURCE, proof });
          const tookMs = performance.now() - begun;
          slowest.push(tookMs);
          // One that comes late was paid too.
          if (outcome === 'delivered') delivered += 1;
          bought.push(
            outcome === 'delivered' && tookMs <= WITHIN_MS ? outcome : `${Math.round(tookMs)} ms ${everything}`,
          );
        }
      } finally {
        running = false;
        await Promise.all(fires);
      }
      const good = bought.filter((outcome) => outcome === 'delivered');
      const figures = `${good.length} of ${PURCHASES} bought, slowest ${Math.round(Math.max(...slowest))} ms, ${sent} garbage`;
      return {
        good: good.length,
        delivered,
        failed: bought.filter((outcome) => outcome !== 'delivered'),
        figures,
        seen,
      };
    };

    attack(
      ['X18', 'X19'],
      `naming a payer with a key: at least ${AT_LEAST} of ${PURCHASES} of its purchases succeed`,
      async (context) => {
        const before = facilitator.calls.length;
        const victim = await createBuyer(testbed.chain);
        const { good, delivered, failed, figures, seen } = await underFire(victim.address, victim.pay);
        context.diagnostic(`${figures}; ${JSON.stringify([...seen])}`);
        assert.ok(good >= AT_LEAST, failed.join('\n'));
        const asked = facilitator.calls.slice(before).filter(({ path }) => path !== '/supported');
        if (witness !== 'the facilitator alone')
          assert.equal(asked.length, 2 * delivered, 'for garbage it is not asked');
      },
      { timeout: 120_000 },
    );

    if (witness === 'a node')
      attack(
        ['X18', 'X19'],
        `naming a payer that is a contract: at least ${AT_LEAST} of ${PURCHASES} of its purchases succeed`,
        async (context) => {
          const victim = await createWalletBuyer(testbed.chain);
          await victim.deploy();
          const { good, failed, figures, seen } = await underFire(victim.address, victim.pay);
          context.diagnostic(`${figures}; ${JSON.stringify([...seen])}`);
          assert.ok(good >= AT_LEAST, failed.join('\n'));
        },
        { timeout: 120_000 },
      );
  });
