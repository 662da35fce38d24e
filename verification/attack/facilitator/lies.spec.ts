import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Hex } from 'viem';
import { decode } from '../../../spec/e2e/proofs.ts';
import { LIES, type Lie, NO_VERDICT } from '../../../spec/payments/x402/hostile.ts';
import { freshAddress } from '../../../spec/payments/x402/signing.ts';
import { createBuyer } from '../../../spec/support/buyer.ts';
import {
  type FacilitatorCall,
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type Script,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../spec/support/hostile-facilitator.ts';
import { eventually } from '../../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { transferCall } from '../../../src/payments/x402/evm/eip3009.ts';
import { attack, isLongRun, measured } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from '../payments/channels.ts';

const INPUT = { city: 'Berlin' };
/** What `market_report` costs, base units. */
const PRICE_UNITS = 10_000n;
const NETWORK = 'eip155:31337';
/** The token of the facilitator, which must not be disclosed. */
const BEARER = 'bearer-canary-7d20';
const HOLDS = new Set(['hang', 'drip']);

const APPROVAL = '{"isValid":true,"success":true}';
const raw = (bytes: string): ScriptedAnswer => ({ kind: 'raw', bytes });
const framed = (body: string, head = 'HTTP/1.1 200 OK'): string =>
  `${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
/** Answers that break HTTP, or that quote the token. */
const BYTES: readonly (readonly [what: string, answer: ScriptedAnswer])[] = [
  ['a yes behind a no', raw(framed('{"isValid":false,"success":false}') + framed(APPROVAL))],
  ['two lengths', raw(framed(APPROVAL, 'HTTP/1.1 200 OK\r\ncontent-length: 2'))],
  ['a folded header', raw(framed(APPROVAL, 'HTTP/1.1 200 OK\r\nx-folded: a\r\n b'))],
  ['300 early hints', raw('HTTP/1.1 103 Early\r\n\r\n'.repeat(300) + framed(APPROVAL))],
  ['a head of 100 KB', raw(framed(APPROVAL, `HTTP/1.1 200 OK\r\nx-large: ${'y'.repeat(100_000)}`))],
  ['101', raw('HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')],
  ['HTTP/0.9', raw(APPROVAL)],
  ['a reason phrase with the token', raw(framed(APPROVAL, `HTTP/1.1 502 ${BEARER}`))],
  ['a refusal with the token', { kind: 'json', body: { isValid: false, success: false, errorReason: BEARER } }],
];
const ANSWERS: readonly (readonly [what: string, lie: Lie])[] = [
  ...LIES,
  // Only the long run has those that delay a settlement for its whole minute.
  ...[...NO_VERDICT.filter(([, { kind }]) => isLongRun || !HOLDS.has(kind)), ...BYTES].map(([what, answer]) => {
    return [what, () => answer] as const;
  }),
];
/** The true state of the payment. */
const FATES = ['unpaid', 'paid'] as const;
/** Failures after which the same proof is sent again. */
const KEEP_THE_PROOF: ReadonlySet<string | undefined> = new Set([
  'PAYMENT_SETTLEMENT_FAILED',
  'PAYMENT_PROVIDER_UNAVAILABLE',
  'GATEWAY_BUSY',
]);
/** Topic of `AuthorizationUsed(address,bytes32)`. */
const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';

describe('a facilitator that lies to a whole gateway', () => {
  const scripts = new Map<string, { readonly verify: Script; readonly settle: Script }>();
  let liar: HostileFacilitator;
  let testbed: Testbed;
  let foreign: string;
  let sold = 0;
  before(async () => {
    liar = await startHostileFacilitator(NETWORK);
    const about = (call: FacilitatorCall): string => {
      const { paymentPayload } = call.body as { paymentPayload: unknown };
      return nonceOf(Buffer.from(JSON.stringify(paymentPayload)).toString('base64'));
    };
    const answering =
      (name: 'verify' | 'settle'): Script =>
      async (call) =>
        (await scripts.get(about(call))?.[name](call)) ?? { kind: 'reset' };
    liar.script({ verify: answering('verify'), settle: answering('settle') });
    testbed = await openTestbed({
      facilitator: { mode: 'remote', url: liar.url },
      // Buyers, facilitators and chain take the same core: that is no overload of the gateway.
      busy: () => 0,
      overrides: {
        ...ALL_CHANNELS,
        payments: { x402: { facilitator: { auth: { type: 'bearer', token: BEARER } } } },
      },
    });
    foreign = await submit((await sign()).proof);
  });
  after(async () => {
    await testbed.close();
    await liar.stop();
  });

  /** A proof of a new payer: one payer may have only a few settlements under way. */
  const sign = async (): Promise<{ readonly proof: string; readonly nonce: string }> => {
    const buyer = await createBuyer(testbed.chain);
    const proof = await buyer.pay((await testbed.quote('market_report', INPUT)).body.payment.envelope);
    return { proof, nonce: nonceOf(proof) };
  };
  /** Moves the money as a stranger or an honest facilitator would; resolves to the transaction. */
  const submit = async (proof: string): Promise<Hex> => {
    const { authorization, signature } = decode(proof).payload;
    const from = freshAddress();
    await testbed.chain.fundGas(from);
    const call = transferCall(authorization as never, String(signature), 'account');
    return testbed.chain.send(from, testbed.chain.token.address, call as Hex);
  };
  /** Whether the chain shows the payment. */
  const isPaid = async (nonce: string): Promise<boolean> => {
    const topics = [AUTHORIZATION_USED, null, nonce];
    const logs = await testbed.chain.request('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', topics }]);
    return (logs as readonly unknown[]).length > 0;
  };
  /** Brings a proof over the channel with this number. */
  const bring = (proof: string, channel: number): Promise<Seen> =>
    buy(testbed.gateway.url, CHANNELS[channel % CHANNELS.length] ?? 'http', {
      resourceId: 'market_report',
      input: INPUT,
      proof,
    });
  /** Brings the proof until its answer is delivered, now or before. */
  const collect = async (proof: string, channel: number): Promise<void> => {
    const last = await eventually(async () => {
      const seen = await bring(proof, channel);
      return seen.outcome === 'delivered' || seen.state === 'delivered' ? seen : undefined;
    }, 'what was paid for');
    assert.ok(last.outcome === 'delivered' || last.code === 'PAYMENT_REPLAYED');
    sold += 1;
  };

  const valid: Script = () => ({ kind: 'json', body: { isValid: true } });
  const settles = (proof: string): Script => {
    let settled: Promise<string> | undefined;
    return async () => {
      settled ??= submit(proof);
      const body = { success: true, transaction: await settled, network: NETWORK, payer: payerOf(proof) };
      return { kind: 'json', body };
    };
  };
  const scripted = (lie: Lie, proof: string, transaction: string): ScriptedAnswer =>
    lie({ network: NETWORK, payer: payerOf(proof), transaction, foreign });

  describe('in any answer', { concurrency: true }, () => {
    for (const [at, [what, lie]] of ANSWERS.entries()) {
      for (const fate of FATES)
        attack(
          ['X10', 'X11'],
          `/settle answers "${what}" for a payment that is ${fate}: the chain decides`,
          async (context) => {
            const { proof, nonce } = await sign();
            let moved: Promise<string> | undefined;
            const settle: Script = async () => {
              if (fate === 'paid') moved ??= submit(proof);
              return scripted(lie, proof, (await moved) ?? INVENTED_TRANSACTION);
            };
            scripts.set(nonce, { verify: valid, settle });
            const seen = await bring(proof, at);
            assertHonest(seen, await isPaid(nonce));
            assert.equal(await isPaid(nonce), fate === 'paid');
            measured(context, 'hostile facilitator answers', 1);
            if (seen.outcome === 'asked') return;
            // In the end the same proof gets its answer: once, and for one price.
            scripts.set(nonce, { verify: valid, settle: fate === 'paid' ? settle : settles(proof) });
            await collect(proof, at + 1);
          },
        );

      attack(
        ['X10', 'X11'],
        `/verify answers "${what}" for a paid proof: no buyer is asked to pay twice`,
        async (context) => {
          const { proof, nonce } = await sign();
          const transaction = await submit(proof);
          const answer = scripted(lie, proof, transaction);
          const verdict = answer.kind === 'json' ? { ...answer, body: asVerdict(answer.body) } : answer;
          scripts.set(nonce, { verify: () => verdict, settle: () => ({ kind: 'reset' }) });
          assertHonest(await bring(proof, at), true);
          const body = { success: true, network: NETWORK, payer: payerOf(proof), transaction };
          scripts.set(nonce, { verify: valid, settle: () => ({ kind: 'json', body }) });
          await collect(proof, at + 1);
          measured(context, 'hostile facilitator answers', 1);
        },
      );
    }
  });

  attack(['X10', 'X11'], 'an unrequested answer waits on the connection: the next buyer does not get it', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [first, second] = [await sign(), await sign()];
      const body = { success: true, transaction: await submit(first.proof), network: NETWORK };
      const behind = framed(JSON.stringify({ ...body, isValid: true, payer: payerOf(second.proof) }));
      scripts.set(first.nonce, {
        verify: () => ({ kind: 'json', body: { isValid: true }, behind }),
        settle: () => ({ kind: 'json', body: { ...body, payer: payerOf(first.proof) }, behind }),
      });
      scripts.set(second.nonce, { verify: valid, settle: () => ({ kind: 'json', body: { success: false } }) });
      await collect(first.proof, round);
      assertHonest(await bring(second.proof, round), false);
      assert.equal(await isPaid(second.nonce), false);
      scripts.set(second.nonce, { verify: valid, settle: settles(second.proof) });
      await collect(second.proof, round);
    }
  });

  attack(
    ['X10', 'X11'],
    'after all lies: one price for each delivery, and the token is disclosed nowhere',
    async (context) => {
      // The first payment bought nothing: lies name it as the payment of other proofs.
      const paidFor = Number((await testbed.income()) / PRICE_UNITS) - 1;
      assert.equal(paidFor, sold);
      const asked = testbed.backend.requests.length;
      assert.equal(asked, sold, 'one backend request for each');
      measured(context, 'unpaid deliveries', asked - paidFor);
      measured(context, 'double settlements', paidFor - sold);
      const pages = await Promise.all(
        ['/api/events?limit=500', '/api/receipts?limit=500'].map(async (path) =>
          (await testbed.gateway.operator(path)).text(),
        ),
      );
      for (const sink of [...pages, ...testbed.gateway.logLines]) assert.ok(!sink.includes(BEARER), sink);
    },
  );
});

/** The same lie as an answer of `/verify`. */
function asVerdict(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { success: isValid, errorReason: invalidReason, ...rest } = body as Readonly<Record<string, unknown>>;
  return { isValid, invalidReason, ...rest };
}

function nonceOf(proof: string): string {
  return String(decode(proof).payload.authorization['nonce']);
}

function payerOf(proof: string): string {
  return String(decode(proof).payload.authorization['from']);
}

/**
 * Holds for every answer to a proof: a delivery only for a payment, a 402 only when no money moved,
 * and any other answer asks the buyer to keep its proof.
 */
function assertHonest(seen: Seen, paid: boolean): void {
  const what = `${seen.outcome} ${seen.code} while ${paid ? 'paid' : 'unpaid'}`;
  assert.ok(!seen.everything.includes(BEARER), 'the token of the facilitator is disclosed');
  if (seen.outcome === 'delivered') assert.ok(paid, what);
  else if (seen.outcome === 'asked') assert.ok(!paid, what);
  else assert.ok(KEEP_THE_PROOF.has(seen.code), what);
}
