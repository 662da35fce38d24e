import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/json/json.ts';
import { createTrustedIssuers, staticIssuer } from '../../../src/mandates/ap2/issuers.ts';
import { withClaims, withDisclosureTexts, withMandate } from '../../support/ap2/hands.ts';
import { createMint, type Mint } from '../../support/ap2/mint.ts';
import { hashed, readPresentation } from '../../support/ap2/oracle.ts';
import { AUDIENCE, freePurchase, MERCHANT, NOW, purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';

/**
 * The body of a 402 that demands a mandate, as ap2 7.4 describes it; changes go into the entry for
 * AP2.
 */
function challengeBody(mint: Mint, wishes: Wishes = {}, changes: JsonObject = {}): JsonObject {
  const { jwt, jti } = mint.checkout(wishes);
  const entry = {
    ...{ method: 'ap2', version: '0.2.0', profile: 'agent-commerce/ap2/checkout/v1', audience: AUDIENCE },
    ...{ nonce: jti, checkoutJwt: jwt, checkoutHash: hashed(jwt), algorithms: ['ES256'], maxEnvelopeBytes: 12_288 },
    ...{ paymentMandate: 'optional', bindPaymentNonce: false, ...changes },
  };
  return { status: 'payment_required', authorization: { required: [entry] } };
}

const PAYER = purchaseWith().payment?.payer ?? '';
/** The commands run on the clock of this machine. */
const now = Math.floor(Date.now() / 1_000);
const mint = createMint();
/** The body of a 402 with a challenge. */
const body = (changes: JsonObject = {}, wishes: Wishes = {}): string =>
  JSON.stringify(challengeBody(mint, { now, ...wishes }, changes));

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
  const work = folder();
  const keys = work.at('keys');
  const challenge = work.at('402.json');
  const demanding = work.at('demanding.json');
  const open = work.at('open.json');
  const openCheckout = work.at('open-checkout.json');
  const direct = (file = '-') => ['direct', '--keys', keys, '--challenge', file];
  const closing = (file: string, to = challenge) => ['close', '--keys', keys, '--open', file, '--challenge', to];
  const opening = (...more: readonly string[]) => ['open', '--keys', keys, '--out', work.at('never.json'), ...more];
  let issuerKey: Jwk;
  let pasted: PastedConfig;

  before(async () => {
    const made = await acgMandate(['keys', '--out', keys]);
    assert.equal(made.code, 0, made.stderr);
    pasted = parse(made.stdout) as PastedConfig;
    const [key] = pasted.authorization.ap2.issuers[0]?.keys ?? [];
    assert.ok(key);
    issuerKey = key;
    writeFileSync(challenge, body());
    writeFileSync(demanding, body({ paymentMandate: 'required' }));
    const limits = ['--max', '0.03', '--budget', '0.1', '--every', 'monthly', '--uses', '5'];
    const opened = await acgMandate(['open', '--keys', keys, '--challenge', challenge, '--out', open, ...limits]);
    assert.equal(opened.code, 0, opened.stderr);
    const bare = await acgMandate(['open', '--keys', keys, '--challenge', challenge, '--out', openCheckout]);
    assert.equal(bare.code, 0, bare.stderr);
  });
  after(() => work.remove());

  it('makes keys named TEST, for their owner alone, and never writes over them', async () => {
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
    const closed = await acgMandate([...closing(open), '--payer', PAYER]);
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

  it('reads the challenge from standard input, at any depth of a message', async () => {
    const message = {
      jsonrpc: '2.0',
      id: 1,
      result: { structuredContent: challengeBody(mint, { now }), isError: true },
    };
    const closed = await acgMandate(closing(openCheckout, '-'), JSON.stringify(message));
    assert.equal(closed.code, 0, closed.stderr);
    assert.equal(envelopeIn(closed.stdout).payment, undefined);
  });

  it('signs one purchase directly, with a payment mandate for the payer', async () => {
    const args = direct(challenge);
    const [bare, paid] = await Promise.all([acgMandate(args), acgMandate([...args, '--payer', PAYER])]);
    const [mandate] = readPresentation(envelopeIn(bare.stdout).checkout, issuerKey);
    assert.equal(mandate?.mandate?.['vct'], 'mandate.checkout.1');
    assert.ok(Number(mandate?.claims['exp']) > now);
    const [payment] = readPresentation(envelopeIn(paid.stdout).payment ?? '', issuerKey);
    assert.equal(payment?.mandate?.['vct'], 'mandate.payment.1');
  });

  it('prints the nonce that the payment must have where a merchant binds it', async () => {
    const args = ['direct', '--keys', keys, '--challenge', '-', '--payer', PAYER];
    const closed = await acgMandate(args, body({ bindPaymentNonce: true }));
    assert.match(closed.stderr, /nonce of the payment must be 0x[0-9a-f]{64}\n/);
  });

  it('shows a header, and verifies nothing', async () => {
    const { stdout } = await acgMandate(direct(challenge));
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

  type Wrong = readonly [rule: string, code: number, message: RegExp, args: readonly string[], stdin?: string];
  const limited = (...more: readonly string[]) => opening('--challenge', challenge, ...more);
  const WRONG: readonly Wrong[] = [
    ['an unknown command', 64, /unknown command mandate sign/, ['sign']],
    [
      'an option of another command',
      64,
      /^unknown option '--payer'; acg mandate show --help/,
      ['show', '--payer', 'x'],
    ],
    [
      ...([
        'a missing folder of keys',
        66,
        /none is no folder that mandate keys --out made: it has no TEST-issuer\.json/,
      ] as const),
      ['direct', '--keys', work.at('none'), '--challenge', challenge],
    ],
    ['no keys at all', 64, /needs --keys/, ['direct', '--challenge', challenge]],
    ['a challenge that is no JSON', 1, /no JSON that can be read \(malformed_json\)/, direct(), '<html>'],
    ['an answer with its head', 1, /give the body alone/, direct(), 'HTTP/1.1 402 Payment Required\n\n{}'],
    ['a body without a challenge', 1, /holds no challenge for a mandate/, direct(), '{"status":"payment_required"}'],
    [
      'a checkout that has ended',
      1,
      /ended at .* seconds ago: call the resource again/,
      direct(),
      body({}, { now: now - 900 }),
    ],
    ['a checkout that was changed', 1, /checkoutHash is not the hash/, direct(), body({ checkoutHash: 'x' })],
    ['a nonce of another checkout', 1, /nonce is not the jti/, direct(), body({ nonce: 'x' })],
    ['a header that is too long', 1, /this merchant reads at most 100/, direct(), body({ maxEnvelopeBytes: 100 })],
    ['no payer for a payment mandate', 64, /needs --payer/, closing(open)],
    ['a payer that is no address', 64, /--payer must be an address/, [...direct(challenge), '--payer', '0x12']],
    [
      'a payer where nothing is paid',
      64,
      /costs nothing/,
      [...direct(), '--payer', PAYER],
      body({ paymentMandate: 'none' }, { purchase: freePurchase() }),
    ],
    [
      'a payer without an open payment mandate',
      64,
      /the open file has none/,
      [...closing(openCheckout), '--payer', PAYER],
    ],
    ['no payment mandate where one is demanded', 1, /demands a payment mandate/, closing(openCheckout, demanding)],
    ['a challenge as open mandates', 1, /holds no open mandate/, closing(challenge)],
    ['nothing to buy', 64, /needs --item/, opening('--merchant', 'a=A')],
    ['an item without a title', 64, /--item must be ID=NAME/, opening('--merchant', 'a=A', '--item', 'x')],
    [
      'limits without a most',
      64,
      /--budget is a limit of a payment mandate, which needs --max/,
      limited('--budget', '1'),
    ],
    ['repetition without a budget', 64, /--every needs --budget/, limited('--max', '1', '--every', 'DAILY')],
    [
      'an unknown frequency',
      64,
      /must be one of ON_DEMAND, DAILY/,
      limited('--max', '1', '--budget', '1', '--every', 'HOURLY'),
    ],
    ['too many digits', 64, /at most 6 digits behind the point/, limited('--max', '0.0000001')],
    ['a most of nothing', 64, /above zero/, limited('--max', '0')],
    ['a life of years', 64, /from 1 to 31/, limited('--days', '400')],
    ['two headers', 64, /^too many arguments for 'show'/, ['show', 'a', 'b']],
  ];
  for (const [rule, code, message, args, stdin = ''] of WRONG)
    it(`refuses ${rule}, and states why`, async () => {
      const run = await acgMandate(args, stdin);
      assert.match(run.stderr, message);
      assert.deepEqual([run.code, run.stdout], [code, '']);
    });

  describe('makes mandates', () => {
    let verify: ReturnType<typeof verifierFor>;
    before(() => {
      const issuer = { id: pasted.authorization.ap2.issuers[0]?.id ?? '', keys: [{ ...issuerKey }] };
      const trust = createTrustedIssuers([staticIssuer(issuer)], { fetcher: { fetch: () => assert.fail() } });
      verify = verifierFor(mint, { trust });
    });
    const accepted = async (args: readonly string[]) => {
      const { stdout, stderr } = await acgMandate(args);
      const verdict = await verify(stdout.trim(), { now: now + 10 });
      assert.ok(verdict.kind === 'accepted', `${verdict.kind === 'refused' ? verdict.reason : ''} ${stderr}`);
      return verdict;
    };

    it('that are accepted when an agent closed them', async () => {
      const { mode, claim } = await accepted(closing(openCheckout));
      assert.deepEqual([mode, claim.open[0]?.recurrence], ['autonomous', undefined]);
    });

    it('that are accepted with all limits that an open payment mandate may have', async () => {
      const often = work.at('often.json');
      const limits = ['--max', '0.02', '--budget', '0.1', '--every', 'monthly', '--uses', '5', '--days', '20'];
      const payer = ['--payer', `eip155:84532:${PAYER}`];
      await acgMandate(['open', '--keys', keys, '--challenge', challenge, '--out', often, ...limits, ...payer]);
      const { claim } = await accepted([...closing(often), '--payer', PAYER]);
      const use = ['10000', '100000', 5];
      assert.deepEqual(
        claim.open.map(({ recurrence: r }) => [r?.units, r?.budgetUnits, r?.maxOccurrences]),
        [use, use],
      );
    });

    it('that are accepted when the provider signed that purchase, with and without its payment', async () => {
      assert.equal((await accepted(direct(challenge))).mode, 'direct');
      const { claim } = await accepted([...direct(challenge), '--payer', PAYER]);
      assert.equal(claim.once.length, 3, 'two mandates and one checkout');
    });
  });
});

function envelopeIn(header: string): { readonly checkout: string; readonly payment: string | undefined } {
  const text = Buffer.from(header.trim(), 'base64url').toString('utf8');
  const { payload, payment_mandate: payment } = JSON.parse(text) as { payload: string; payment_mandate?: string };
  return { checkout: payload, payment };
}

/** The maker of mandates, checked by a reader that shares no line with it. */
const { provider, bank, stranger, agent, subAgent } = mint.parties;

describe('the maker of mandates', () => {
  it('makes an open mandate that names the agent, and a closed one that the agent signed', () => {
    const made = mint.autonomous();
    const [open, closed] = readPresentation(made.payload, provider.publicJwk);
    assert.equal(open?.header['kid'], provider.publicJwk.kid);
    assert.equal(open?.mandate?.['vct'], 'mandate.checkout.open.1');
    const { kty, crv, x, y } = agent.publicJwk;
    assert.deepEqual(open?.mandate?.['cnf'], { jwk: { kty, crv, x, y } }, 'four public members and no more');
    const [items, merchants] = (open?.mandate?.['constraints'] ?? []) as readonly Record<string, unknown>[];
    const acceptable = [{ id: 'market_report', title: 'Market report' }];
    assert.deepEqual(items?.['items'], [{ id: 'line_1', acceptable_items: acceptable, quantity: 1 }]);
    assert.deepEqual(merchants?.['allowed'], [MERCHANT]);
    assert.equal(closed?.header['typ'], 'kb+sd-jwt');
    assert.equal(closed?.claims['aud'], AUDIENCE);
    assert.equal(closed?.claims['nonce'], made.jti);
    assert.equal(closed?.mandate?.['checkout_jwt'], made.checkoutJwt);
    assert.equal(closed?.mandate?.['checkout_hash'], hashed(made.checkoutJwt));
  });

  it('ties the payment mandate to the open checkout mandate and to the checkout', () => {
    const made = mint.autonomous({ payment: true });
    const [root] = readPresentation(made.payload, provider.publicJwk);
    const [open, closed] = readPresentation(made.paymentMandate ?? '', provider.publicJwk);
    const limits = (open?.mandate?.['constraints'] ?? []) as readonly Record<string, unknown>[];
    const reference = limits.find(({ type }) => type === 'payment.reference');
    assert.equal(reference?.['conditional_transaction_id'], root?.sdHash);
    assert.equal(closed?.mandate?.['transaction_id'], hashed(made.checkoutJwt));
    assert.deepEqual(closed?.mandate?.['payment_amount'], { amount: 10_000, currency: 'USDC' });
  });

  it('lets an agent delegate to another', () => {
    const made = mint.autonomous({ delegated: true });
    const read = readPresentation(made.payload, provider.publicJwk);
    assert.deepEqual(
      read.map(({ header }) => header['typ']),
      ['dc+sd-jwt', 'kb+sd-jwt+kb', 'kb+sd-jwt'],
    );
    const cnf = read[1]?.mandate?.['cnf'] as { readonly jwk: { readonly x: string } };
    assert.equal(cnf.jwk.x, subAgent.publicJwk.x);
  });

  it('makes direct mandates, and such under the credential of a bank', () => {
    const [direct] = readPresentation(mint.direct().payload, provider.publicJwk);
    assert.equal(direct?.claims['exp'], NOW + 290);
    const [credential, closed] = readPresentation(mint.credential().payload, bank.publicJwk);
    assert.equal(credential?.claims['vct'], 'com.emvco.dpc');
    assert.equal(closed?.mandate?.['vct'], 'mandate.checkout.1');
  });

  it('uses no salt and no checkout twice', () => {
    const [first, second] = [mint.autonomous(), mint.autonomous()];
    assert.notEqual(first.jti, second.jti);
    const salts = [first, second].flatMap(({ segments }) => segments.flatMap(saltsOf));
    assert.equal(new Set(salts).size, salts.length);
    for (const salt of salts) assert.equal(Buffer.from(salt, 'base64url').length, 16);
  });

  it('can be made to err, and the reader notices', () => {
    const refused = (text: string, key = provider.publicJwk) => assert.throws(() => readPresentation(text, key));
    refused(mint.autonomous().payload, stranger.publicJwk);
    refused(mint.autonomous({ hands: { closed: { signer: stranger } } }).payload);
    refused(mint.autonomous({ hands: { closed: withClaims({ sd_hash: hashed('another') }) } }).payload);
    refused(mint.autonomous({ hands: { open: withDisclosureTexts((texts) => [...texts, 'WyJ4IiwxXQ']) } }).payload);
    const [, closed] = readPresentation(
      mint.autonomous({ hands: { closed: withMandate({ checkout_hash: undefined }) } }).payload,
      provider.publicJwk,
    );
    assert.equal(closed?.mandate?.['checkout_hash'], undefined);
  });
});

function saltsOf(segment: string): readonly string[] {
  const texts = segment.slice(0, -1).split('~').slice(1);
  return texts
    .filter((text) => text !== '')
    .map((text) => String((JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[])[0]));
}

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `acg mandate` as a shell would. */
function acgMandate(args: readonly string[], stdin = ''): Promise<Run> {
  return new Promise((done) => {
    const child = execFile(process.execPath, ['tools/acg.ts', 'mandate', ...args], (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
    child.stdin?.end(stdin);
  });
}

/** A new folder, and its removal. */
function folder(): { readonly at: (name: string) => string; readonly remove: () => void } {
  const directory = mkdtempSync(path.join(tmpdir(), 'acg-mandate-'));
  return { at: (name) => path.join(directory, name), remove: () => rmSync(directory, { recursive: true }) };
}
