import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe } from 'node:test';
import { decode, encode } from '../../../spec/e2e/proofs.ts';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { type Facilitator, startFacilitator } from '../../../spec/support/facilitator.ts';
import {
  type HostileFacilitator,
  relayTo,
  startHostileFacilitator,
} from '../../../spec/support/hostile-facilitator.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { createWalletBuyer } from '../../../spec/support/wallets.ts';
import { attack, times } from '../catalogue.ts';
import { buy } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
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
      return { good: good.length, failed: bought.filter((outcome) => outcome !== 'delivered'), figures, seen };
    };

    attack(
      ['X18', 'X19'],
      `naming a payer with a key: at least ${AT_LEAST} of ${PURCHASES} of its purchases succeed`,
      async (context) => {
        const before = facilitator.calls.length;
        const victim = await createBuyer(testbed.chain);
        const { good, failed, figures, seen } = await underFire(victim.address, victim.pay);
        context.diagnostic(`${figures}; ${JSON.stringify([...seen])}`);
        assert.ok(good >= AT_LEAST, failed.join('\n'));
        const asked = facilitator.calls.slice(before).filter(({ path }) => path !== '/supported');
        if (witness !== 'the facilitator alone') assert.equal(asked.length, 2 * good, 'for garbage it is not asked');
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
