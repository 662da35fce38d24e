import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { decodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { generatePrivateKey } from 'viem/accounts';
import { newId } from '../../../src/events/event.ts';
import { TEST_BUYER } from '../../../src/payments/pricing/networks.ts';
import { whyOf } from '../../../tools/pay/channel.ts';
import { acgOfCheckout } from '../../cli/acg.ts';
import { answerJson } from '../../support/http-server.ts';
import { type Answer, asking, challenged, delivered, openSeller, PAYEE, selling } from './strange-seller.ts';

/** The envelope of a gateway whose merchant answered 404 with this body. */
function failure(body: unknown): object {
  const failed = { status: 'error', code: 'BACKEND_ERROR', message: 'Not delivered.', retryable: false };
  return { ...failed, details: { status: 404, backend: { status: 404, body } } };
}

/** Sellers that are no gateway of ours. */
describe('acg pay before a strange seller', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-pay-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** What `acg pay` does before a server that answers so; `proofs`: the payments that it got. */
  async function before(
    answer: Answer,
    args: readonly string[] = ['--yes'],
    env: Readonly<Record<string, string>> = {},
  ) {
    const { url, stop, proofs, keys } = await openSeller(answer);
    try {
      const run = await acgOfCheckout(folder, ['pay', `${url}/x`, ...args], env);
      return { ...run, proofs, keys };
    } finally {
      await stop();
    }
  }

  it('signs what it has shown, and nothing else of the challenge', async () => {
    const [first] = asking().accepts;
    const dear = {
      ...asking({ amount: '99000000' }),
      accepts: [{ ...first, scheme: 'upto' }, first, ...asking({ amount: '1' }).accepts],
    };
    const { code, proofs, errors } = await before(selling(delivered, challenged(dear as PaymentRequired)));
    assert.equal(code, 0, errors);
    assert.match(errors, /price {4}0\.01 TUSD/);
    const { accepted, payload } = decodePaymentSignatureHeader(proofs[0] ?? '');
    const { authorization } = payload as { readonly authorization: { readonly value: string; readonly to: string } };
    assert.deepEqual([accepted.amount, authorization.value, authorization.to], ['10000', '10000', PAYEE]);
  });

  it('pays on the network that is named, and names the others where that has too little money', async () => {
    const local = asking();
    const base = asking({ network: 'eip155:84532', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' });
    const both = { ...local, accepts: [...local.accepts, ...base.accepts] };
    const answer = challenged(both, { error: { message: 'Refused: insufficient_funds.' } });
    const env = { ACG_PAY_KEY: generatePrivateKey() };
    for (const [network, paid, other] of [
      ['base-sepolia', 'eip155:84532', 'eip155:31337'],
      ['eip155:31337', 'eip155:31337', 'eip155:84532'],
    ] as const) {
      const { code, errors, proofs } = await before(answer, ['--yes', '--network', network], env);
      assert.equal(code, 1);
      assert.deepEqual(
        proofs.map((proof) => decodePaymentSignatureHeader(proof).accepted.network),
        [paid],
      );
      assert.match(errors, new RegExp(`Nothing was paid. It is also offered on ${other}; choose with --network.\n$`));
    }
    const { code, errors, proofs } = await before(answer, ['--yes', '--network', 'polygon'], env);
    assert.deepEqual([code, proofs], [1, []]);
    assert.match(
      errors,
      /offered on eip155:137 can be paid .*; offered: exact \w+ on eip155:31337, exact \w+ on eip155:84532\n$/,
    );
  });

  it('sends the same proof under the same key while the seller is busy', async () => {
    const { code, proofs, keys } = await before(
      selling(({ response }, got) => answerJson(response, got.length < 3 ? 503 : 200, {})),
    );
    assert.equal(code, 0);
    assert.equal(proofs.length, 3);
    assert.equal(new Set(proofs).size, 1);
    assert.equal(keys.size, 1);
    assert.match(String([...keys][0]), /^[0-9a-f-]{36}$/);
  });

  it('takes a 404 with receipt and payment for what was bought, and the envelope of a failure not', async () => {
    const settled = { success: true, transaction: '0x1', network: 'eip155:31337', receiptId: newId('receipt_') };
    for (const [body, expected] of [
      [{ error: 'no such city' }, 0],
      [{ status: 'error', code: 'BACKEND_ERROR', message: 'not delivered', retryable: false }, 1],
    ] as const) {
      const { code, output } = await before(
        selling(({ response }) => {
          response.setHeader('payment-response', Buffer.from(JSON.stringify(settled)).toString('base64'));
          answerJson(response, 404, body);
        }),
      );
      assert.deepEqual([code, JSON.parse(output.toString())], [expected, body]);
    }
  });

  it('says what the merchant says of a failure, in one line without control characters', async () => {
    const { errors } = await before(
      selling(({ response }) => answerJson(response, 502, failure({ error: 'No such city\u001b[2K.' }))),
    );
    assert.match(
      errors,
      /\nnot delivered: 502 The backend answered 404\. It says: No such city \[2K\. Not delivered\.\n$/,
    );
  });

  for (const [said, words] of [
    [{ error: { code: 7, message: 'No such city.' } }, 'It says: No such city. '],
    [{ title: 'Not found', detail: 'No such city' }, 'It says: No such city. '],
    [{ detail: [{ loc: ['city'] }] }, 'It says: [{"loc":["city"]}]. '],
    [{ error: true }, 'It says: {"error":true}. '],
    ['x'.repeat(4_000), `It says: ${'x'.repeat(240)}…. `],
    [null, ''],
    [undefined, ''],
  ] as const)
    it(`says of a merchant's ${JSON.stringify(said)?.slice(0, 60)}: ${words.slice(0, 60)}`, () =>
      assert.equal(whyOf(failure(said)), `The backend answered 404. ${words}Not delivered.`));

  it('follows no redirect with a proof', async () => {
    const { code, proofs, errors } = await before(
      selling(({ response }) => response.writeHead(307, { location: '/elsewhere' }).end()),
    );
    assert.deepEqual([code, proofs.length], [1, 1]);
    assert.match(errors, /the answer names no settlement\nnot delivered: 307\n$/);
  });

  it('pays with the TEST buyer on the local chain alone', async () => {
    const real = asking({ network: 'eip155:84532', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' });
    for (const [env, words] of [
      [{}, /there is no key to pay with: set ACG_PAY_KEY, or name a file with --key-file\n$/],
      [
        { ACG_PAY_KEY: TEST_BUYER.key },
        /ACG_PAY_KEY has a key that is public, for development on eip155:31337: it pays nowhere else\n$/,
      ],
    ] as const) {
      const { code, proofs, errors } = await before(challenged(real), ['--yes'], env);
      assert.deepEqual([code, proofs.length], [64, 0]);
      assert.match(errors, words);
    }
  });

  it('shows base units of a token that the seller alone knows, and refuses a --max in its units', async () => {
    const token = `0x${'3'.repeat(40)}`;
    const document = asking({
      network: 'eip155:8453',
      asset: token,
      amount: '5000000000000000000',
      extra: { name: 'USD Coin', version: '2', decimals: 18, symbol: 'USDC' },
    });
    const env = { ACG_PAY_KEY: generatePrivateKey() };
    const shown = await before(challenged(document), [], env);
    assert.match(
      shown.errors,
      new RegExp(`price    5000000000000000000 base units of the token ${token}, by the seller's word 5 USDC\n`),
    );
    const { code, proofs, errors } = await before(challenged(document), ['--yes', '--max', '10'], env);
    assert.deepEqual([code, proofs.length], [64, 0]);
    assert.match(errors, /give --max in base units, such as --max 5000000000000000000units/);
  });

  it('shows no control characters of the seller', async () => {
    const document = asking({}, { description: 'cheap\u001b[1A\r\nprice    0 USDC' });
    const { errors } = await before(challenged(document), []);
    assert.match(errors, /^cheap \[1A {2}price {4}0 USDC\n {2}price {4}0\.01 TUSD\n/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    assert.doesNotMatch(errors, /[\x00-\x09\x0b-\x1f]/);
  });

  it('says where a mandate is missing, before it pays', async () => {
    const { code, proofs, errors } = await before(
      challenged(asking(), { authorization: { required: [{ method: 'ap2' }] } }),
    );
    assert.deepEqual([code, proofs.length], [1, 0]);
    assert.match(errors, /a mandate is needed as well: .*--mandate FILE\n$/);
  });

  it('does not pay by version 1 of x402, nor for a 402 without any offer', async () => {
    for (const body of [{ x402Version: 1, accepts: [{}] }, { x402Version: 2, accepts: [] }, {}]) {
      const { code, proofs, errors } = await before(({ response }) => answerJson(response, 402, body));
      assert.deepEqual([code, proofs.length], [1, 0]);
      assert.equal(errors, '402 without an offer of x402 version 2: nothing that acg pay can pay\n');
    }
  });

  it('reads the offer of a body where there is no header', async () => {
    const { code, proofs } = await before(selling(delivered, ({ response }) => answerJson(response, 402, asking())));
    assert.deepEqual([code, proofs.length], [0, 1]);
  });

  it('sends headers that it is given with each request', async () => {
    const seen: unknown[] = [];
    await before(
      (exchange, got) => {
        seen.push(exchange.request.headers['x-shop']);
        selling(delivered)(exchange, got);
      },
      ['--yes', '--header', 'X-Shop: a: b'],
    );
    assert.deepEqual(seen, ['a: b', 'a: b']);
  });
});
