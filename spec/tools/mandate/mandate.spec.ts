import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { challengeBody } from '../../support/ap2/challenge.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { readPresentation } from '../../support/ap2/oracle.ts';
import { AUDIENCE, freePurchase } from '../../support/ap2/purchase.ts';
import { acgMandate, folder } from './acg-mandate.ts';

const PAYER = '0x13f9855a49dea6e061d1ceb21ff824629c145eb5';
/** The commands run on the clock of this machine. */
const now = Math.floor(Date.now() / 1_000);
const mint = createMint();

interface PastedConfig {
  readonly authorization: {
    readonly ap2: {
      readonly checkout: { readonly signingKey: string };
      readonly issuers: readonly { readonly id: string; readonly keys: readonly Jwk[] }[];
    };
  };
}
interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
  readonly kid: string;
}

describe('acg mandate', () => {
  const place = folder();
  const keys = place.at('keys');
  const challenge = place.at('402.json');
  const demanding = place.at('demanding.json');
  const open = place.at('open.json');
  const openCheckout = place.at('open-checkout.json');
  let issuerKey: Jwk;
  let pasted: PastedConfig;

  before(async () => {
    const made = await acgMandate(['keys', '--out', keys]);
    assert.equal(made.code, 0, made.stderr);
    pasted = parse(made.stdout) as PastedConfig;
    const [key] = pasted.authorization.ap2.issuers[0]?.keys ?? [];
    assert.ok(key);
    issuerKey = key;
    writeFileSync(challenge, JSON.stringify(challengeBody(mint, { now })));
    writeFileSync(demanding, JSON.stringify(challengeBody(mint, { now }, { paymentMandate: 'required' })));
    const limits = ['--max', '0.03', '--budget', '0.1', '--every', 'monthly', '--uses', '5'];
    const opened = await acgMandate(['open', '--keys', keys, '--challenge', challenge, '--out', open, ...limits]);
    assert.equal(opened.code, 0, opened.stderr);
    const bare = await acgMandate(['open', '--keys', keys, '--challenge', challenge, '--out', openCheckout]);
    assert.equal(bare.code, 0, bare.stderr);
  });
  after(() => place.remove());

  it('makes keys that say TEST, for their owner alone, and never writes over them', async () => {
    const names = readdirSync(keys);
    assert.equal(names.length, 5);
    for (const name of names) {
      assert.match(name, /^TEST-/);
      assert.equal(statSync(path.join(keys, name)).mode & 0o777, 0o600, name);
    }
    const before = readFileSync(path.join(keys, 'TEST-provider.pem'), 'utf8');
    const again = await acgMandate(['keys', '--out', keys]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /is there already/);
    assert.equal(readFileSync(path.join(keys, 'TEST-provider.pem'), 'utf8'), before);
  });

  it('prints a configuration without anything private', () => {
    assert.deepEqual(Object.keys(issuerKey).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    assert.match(pasted.authorization.ap2.checkout.signingKey, /^\$\{file:\/.*TEST-checkout\.pem\}$/);
  });

  it('closes open mandates for the checkout of a challenge', async () => {
    const closed = await acgMandate([
      'close',
      '--keys',
      keys,
      '--open',
      open,
      '--challenge',
      challenge,
      '--payer',
      PAYER,
    ]);
    assert.equal(closed.code, 0, closed.stderr);
    const { checkout, payment } = envelopeIn(closed.stdout);
    const [granted, done] = readPresentation(checkout, issuerKey);
    assert.equal(done?.claims['aud'], AUDIENCE);
    const [limited, paid] = readPresentation(payment ?? '', issuerKey);
    const limits = (limited?.mandate?.['constraints'] ?? []) as readonly Record<string, unknown>[];
    assert.deepEqual(
      limits.map(({ type, max, conditional_transaction_id: id }) => [type, max ?? id]),
      [
        ['payment.amount_range', 30_000],
        ['payment.allowed_payees', undefined],
        ['payment.budget', 0.1],
        ['payment.agent_recurrence', undefined],
        ['payment.reference', granted?.sdHash],
      ],
    );
    assert.deepEqual(paid?.mandate?.['payment_amount'], { amount: 10_000, currency: 'USDC' });
    assert.deepEqual(paid?.mandate?.['payment_instrument'], { id: `eip155:84532:${PAYER}`, type: 'x402' });
  });

  it('reads the challenge from standard input, wherever a front put it', async () => {
    const message = {
      jsonrpc: '2.0',
      id: 1,
      result: { structuredContent: challengeBody(mint, { now }), isError: true },
    };
    const args = ['close', '--keys', keys, '--open', openCheckout, '--challenge', '-'];
    const closed = await acgMandate(args, JSON.stringify(message));
    assert.equal(closed.code, 0, closed.stderr);
    assert.equal(envelopeIn(closed.stdout).payment, undefined);
  });

  it('signs one purchase directly, with a payment mandate for who pays', async () => {
    const args = ['direct', '--keys', keys, '--challenge', challenge];
    const [bare, paid] = await Promise.all([acgMandate(args), acgMandate([...args, '--payer', PAYER])]);
    const [mandate] = readPresentation(envelopeIn(bare.stdout).checkout, issuerKey);
    assert.equal(mandate?.mandate?.['vct'], 'mandate.checkout.1');
    assert.ok(Number(mandate?.claims['exp']) > now);
    const [payment] = readPresentation(envelopeIn(paid.stdout).payment ?? '', issuerKey);
    assert.equal(payment?.mandate?.['vct'], 'mandate.payment.1');
  });

  it('tells the nonce that the payment must have where a shop binds it', async () => {
    const bound = JSON.stringify(challengeBody(mint, { now }, { bindPaymentNonce: true }));
    const closed = await acgMandate(['direct', '--keys', keys, '--challenge', '-', '--payer', PAYER], bound);
    assert.match(closed.stderr, /nonce of the payment must be 0x[0-9a-f]{64}\n/);
  });

  it('shows what a header says, and verifies nothing', async () => {
    const { stdout } = await acgMandate(['direct', '--keys', keys, '--challenge', challenge]);
    const spoiled = `${stdout.trim().slice(0, -8)}`;
    const [shown, cut] = await Promise.all([acgMandate(['show', stdout.trim()]), acgMandate(['show', '-'], spoiled)]);
    assert.match(shown.stdout, /^Decoded, not verified\.\nenvelope, \d+ bytes: {"method":"ap2","version":"0\.2"}/);
    assert.match(shown.stdout, /payload, segment 1 of 1[\s\S]*mandate\.checkout\.1/);
    assert.match(shown.stdout, /"resource_id":"market_report"/, 'the checkout in its disclosure is read too');
    assert.match(shown.stdout, /exp \d{4}-\d\d-\d\dT/);
    assert.equal(cut.code, 1);
  });

  it('shows a hostile token without letting it steer the terminal', async () => {
    const hostile = Buffer.from('{"x":"\u009b31m\u202egnp"}').toString('base64url');
    const { stdout } = await acgMandate(['show', `${hostile}.${hostile}.AA`]);
    assert.doesNotMatch(stdout, /[\u0080-\u009f\u202e]/);
    assert.match(stdout, /\\u009b31m\\u202egnp/);
  });

  const wrong: readonly (readonly [
    rule: string,
    args: () => readonly string[],
    stdin: string,
    code: number,
    says: RegExp,
  ])[] = [
    ['an unknown command', () => ['sign'], '', 64, /unknown command mandate sign/],
    ['an option of another command', () => ['show', '--payer', 'x'], '', 64, /--payer does not belong to mandate show/],
    [
      'a missing folder of keys',
      () => ['direct', '--keys', place.at('none'), '--challenge', challenge],
      '',
      1,
      /none is no folder that mandate keys --out made: it has no TEST-issuer\.json/,
    ],
    ['no keys at all', () => ['direct', '--challenge', challenge], '', 64, /needs --keys/],
    ['a challenge that is no JSON', () => direct(), '<html>', 1, /no JSON that can be read \(malformed_json\)/],
    ['an answer with its head', () => direct(), 'HTTP/1.1 402 Payment Required\n\n{}', 1, /give the body alone/],
    [
      'a body without a challenge',
      () => direct(),
      '{"status":"payment_required"}',
      1,
      /holds no challenge for a mandate/,
    ],
    [
      'a checkout that has ended',
      () => direct(),
      JSON.stringify(challengeBody(mint, { now: now - 900 })),
      1,
      /ended at .* seconds ago: call the resource again/,
    ],
    [
      'a checkout that was changed',
      () => direct(),
      JSON.stringify(challengeBody(mint, { now }, { checkoutHash: 'x' })),
      1,
      /checkoutHash is not the hash/,
    ],
    [
      'a nonce of another checkout',
      () => direct(),
      JSON.stringify(challengeBody(mint, { now }, { nonce: 'x' })),
      1,
      /nonce is not the jti/,
    ],
    [
      'a header that the shop would not read',
      () => direct(),
      JSON.stringify(challengeBody(mint, { now }, { maxEnvelopeBytes: 100 })),
      1,
      /this merchant reads at most 100/,
    ],
    [
      'no payer for a payment mandate',
      () => ['close', '--keys', keys, '--open', open, '--challenge', challenge],
      '',
      64,
      /needs --payer/,
    ],
    [
      'a payer that is no address',
      () => [...direct(challenge), '--payer', '0x12'],
      '',
      64,
      /--payer must be an address/,
    ],
    [
      'a payer where nothing is paid',
      () => [...direct(), '--payer', PAYER],
      JSON.stringify(challengeBody(mint, { now, purchase: freePurchase() }, { paymentMandate: 'none' })),
      64,
      /costs nothing/,
    ],
    [
      'a payer without an open payment mandate',
      () => ['close', '--keys', keys, '--open', openCheckout, '--challenge', challenge, '--payer', PAYER],
      '',
      64,
      /the open file has none/,
    ],
    [
      'a shop that demands a payment mandate',
      () => ['close', '--keys', keys, '--open', openCheckout, '--challenge', demanding],
      '',
      1,
      /demands a payment mandate/,
    ],
    [
      'a challenge as open mandates',
      () => ['close', '--keys', keys, '--open', challenge, '--challenge', challenge],
      '',
      1,
      /holds no open mandate/,
    ],
    ['nothing to buy', () => opening('--merchant', 'a=A'), '', 64, /needs --item/],
    ['an item without a title', () => opening('--merchant', 'a=A', '--item', 'x'), '', 64, /--item must be ID=NAME/],
    [
      'limits without a most',
      () => opening('--challenge', challenge, '--budget', '1'),
      '',
      64,
      /--budget is a limit of a payment mandate, which needs --max/,
    ],
    [
      'repetition without a budget',
      () => opening('--challenge', challenge, '--max', '1', '--every', 'DAILY'),
      '',
      64,
      /--every needs --budget/,
    ],
    [
      'an unknown rhythm',
      () => opening('--challenge', challenge, '--max', '1', '--budget', '1', '--every', 'HOURLY'),
      '',
      64,
      /must be one of ON_DEMAND, DAILY/,
    ],
    [
      'too many digits',
      () => opening('--challenge', challenge, '--max', '0.0000001'),
      '',
      64,
      /at most 6 digits behind the point/,
    ],
    ['a most of nothing', () => opening('--challenge', challenge, '--max', '0'), '', 64, /above zero/],
    ['a life of years', () => opening('--challenge', challenge, '--days', '400'), '', 64, /from 1 to 31/],
    ['two headers', () => ['show', 'a', 'b'], '', 64, /takes one header value/],
  ];
  const direct = (file = '-') => ['direct', '--keys', keys, '--challenge', file];
  const opening = (...more: readonly string[]) => ['open', '--keys', keys, '--out', place.at('never.json'), ...more];

  for (const [rule, args, stdin, code, says] of wrong)
    it(`refuses ${rule}, and says why`, async () => {
      const run = await acgMandate(args(), stdin);
      assert.match(run.stderr, says);
      assert.equal(run.code, code);
      assert.equal(run.stdout, '');
    });
});

function envelopeIn(header: string): { readonly checkout: string; readonly payment: string | undefined } {
  const text = Buffer.from(header.trim(), 'base64url').toString('utf8');
  const { payload, payment_mandate: payment } = JSON.parse(text) as { payload: string; payment_mandate?: string };
  return { checkout: payload, payment };
}
