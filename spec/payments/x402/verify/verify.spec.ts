import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hashTypedData } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { TEST_BUYER } from '../../../../src/payments/pricing/networks.ts';
import type { RailVerdict } from '../../../../src/payments/rail.ts';
import { prepareRecovery } from '../../../../src/payments/x402/evm/account.ts';
import { createExaminer, type ExaminerDeps } from '../../../../src/payments/x402/verify/verify.ts';
import { inPlaceUrls } from '../../../../src/payments/x402/wire/challenge.ts';
import {
  decodeProof,
  encodeProof,
  invalidWindow,
  leastSecondsToPay,
  tooLate,
} from '../../../../src/payments/x402/wire/proof.ts';
import type {
  Eip3009Authorization,
  PaymentPayload,
  PaymentRequirements,
  WalletSignatures,
  WalletVerdict,
} from '../../../../src/payments/x402/wire/types.ts';
import {
  bareV,
  CHECKED_HERE,
  freshAccount,
  freshAddress,
  highS,
  offerFor,
  otherV,
  payloadFor,
  RESOURCE_URL,
  sign,
  type Terms,
  termsFor,
  typedData,
} from '../signing.ts';

const terms = termsFor();
const offer = offerFor(terms);
const account = freshAccount();
const { recover } = await prepareRecovery();
const NOW = 1_800_000_000;

/** Examines a payload as the middleware does: the signature only when nothing cheaper refused. */
async function verdict(
  payload: PaymentPayload,
  deps: Partial<ExaminerDeps> = {},
  nowSeconds = NOW,
  present: PaymentRequirements = offer,
) {
  const decoded = decodeProof(encodeProof(payload));
  if (decoded.kind === 'unreadable') return decoded.reason;
  const examine = createExaminer({ terms, recover, ...CHECKED_HERE, ...deps });
  const nowMs = nowSeconds * 1_000;
  const examination = examine({ decoded, offer: present, resourceUrl: RESOURCE_URL, nowMs });
  if (examination.refusal !== undefined) return examination.refusal.reason;
  const checked = await examination.checkSignature();
  const signature = checked.kind === 'unproven' ? await checked.prove() : checked;
  return signature.kind === 'refused' ? signature.reason : signature.kind;
}

function payable(changes: Partial<Eip3009Authorization> = {}): Promise<PaymentPayload> {
  return payloadFor(account, terms, { validAfter: '0', validBefore: String(NOW + 120), ...changes });
}

const valid = await payable();
/** A good signature of another account for the same authorization. */
const stranger = await sign(freshAccount(), valid.payload.authorization, terms);

function accepting(changes: object): PaymentPayload {
  return { ...valid, accepted: { ...valid.accepted, ...changes } };
}

function authorizing(changes: Partial<Eip3009Authorization>): PaymentPayload {
  const { signature, authorization } = valid.payload;
  return { ...valid, payload: { signature, authorization: { ...authorization, ...changes } } };
}

function signedAs(form: (signature: string) => string): PaymentPayload {
  return { ...valid, payload: { ...valid.payload, signature: form(valid.payload.signature) } };
}

const RECIPIENT = 'invalid_exact_evm_payload_recipient_mismatch';
const VALUE = 'invalid_exact_evm_payload_authorization_value_mismatch';
const BEFORE = 'invalid_exact_evm_payload_authorization_valid_before';
const SIGNATURE = 'invalid_exact_evm_payload_signature';
const REQUIREMENTS = 'invalid_payment_requirements';

describe('a proof of a payer whose key is published', () => {
  const published = privateKeyToAccount(TEST_BUYER.key);
  const window = { validAfter: '0', validBefore: String(NOW + 120) };
  const verdictOn = async (terms: Terms): Promise<string> =>
    verdict(await payloadFor(published, terms, window), { terms }, NOW, offerFor(terms));

  it('is genuine on the local chain', async () => {
    assert.equal(await verdictOn(terms), 'genuine');
  });

  it('is refused on every other chain, by a reason of its own', async () => {
    assert.equal(await verdictOn({ ...terms, network: 'eip155:84532', chainId: 84_532 }), 'test_payer_not_allowed');
  });
});

describe('a proof against our offer', () => {
  const rows: readonly (readonly [what: string, payload: PaymentPayload, outcome: string])[] = [
    ['as offered and signed', valid, 'genuine'],
    ['another network accepted', accepting({ network: 'eip155:1' }), 'invalid_network'],
    ['a network in capitals', accepting({ network: 'EIP155:31337' }), 'invalid_network'],
    ['a smaller amount accepted', accepting({ amount: '9999' }), REQUIREMENTS],
    ['a larger amount accepted', accepting({ amount: '10001' }), REQUIREMENTS],
    ['amount zero accepted', accepting({ amount: '0' }), REQUIREMENTS],
    ['another asset accepted', accepting({ asset: freshAddress() }), REQUIREMENTS],
    ['another payee accepted', accepting({ payTo: freshAddress() }), REQUIREMENTS],
    ['another timeout accepted', accepting({ maxTimeoutSeconds: 3_600 }), REQUIREMENTS],
    ['an empty extra', accepting({ extra: {} }), REQUIREMENTS],
    ['extra left out', accepting({ extra: undefined }), 'genuine'],
    ['extra null', accepting({ extra: null }), 'genuine'],
    ['another EIP-712 name', accepting({ extra: { ...offer.extra, name: 'USD' } }), REQUIREMENTS],
    ['another payment flow', accepting({ extra: { ...offer.extra, paymentFlow: 'authorization' } }), REQUIREMENTS],
    ['extra with an addition', accepting({ extra: { ...offer.extra, note: 1 } }), 'genuine'],
    ['an amount with leading zeros', accepting({ amount: '0010000' }), 'genuine'],
    ['the URL of another resource', { ...valid, resource: { url: `${RESOURCE_URL}2` } }, REQUIREMENTS],
    ['paid to another payee', authorizing({ to: freshAddress() }), RECIPIENT],
    ['underpaid', authorizing({ value: '9999' }), VALUE],
    ['overpaid', authorizing({ value: '10001' }), VALUE],
    ['paid nothing', authorizing({ value: '0' }), VALUE],
    ['paid 2^256 - 1', authorizing({ value: (2n ** 256n - 1n).toString() }), VALUE],
    ['signed with s in the upper half', signedAs(highS), SIGNATURE],
    ['signed with the other v', signedAs(otherV), SIGNATURE],
    ['another payer', authorizing({ from: freshAddress() }), SIGNATURE],
    ['another validAfter', authorizing({ validAfter: '1' }), SIGNATURE],
    ['another validBefore', authorizing({ validBefore: String(NOW + 121) }), SIGNATURE],
    ['another nonce', authorizing({ nonce: `0x${'1'.repeat(64)}` }), SIGNATURE],
    [
      'not valid yet',
      authorizing({ validAfter: String(NOW + 6) }),
      'invalid_exact_evm_payload_authorization_valid_after',
    ],
    ['over too soon', authorizing({ validBefore: String(NOW + 5) }), BEFORE],
    ['milliseconds for validBefore', authorizing({ validBefore: `${NOW}000` }), BEFORE],
    ['validBefore 2^256 - 1', authorizing({ validBefore: (2n ** 256n - 1n).toString() }), BEFORE],
  ];
  for (const [url, outcome] of [
    [RESOURCE_URL, 'genuine'],
    ['https://shop.example/reports/Lisboa', 'genuine'],
    ['https://shop.example/other/Berlin', REQUIREMENTS],
    ['https://shop.example/api/resources/other/invoke', REQUIREMENTS],
  ] as const)
    it(`of a resource that is sold in place, naming ${url}: ${outcome}`, async () => {
      const decoded = decodeProof(encodeProof({ ...valid, resource: { url } }));
      assert.ok(decoded.kind === 'decoded');
      const examine = createExaminer({ terms, recover, ...CHECKED_HERE });
      const inPlace = inPlaceUrls('https://shop.example/reports/{city}');
      const { refusal } = examine({ decoded, offer, resourceUrl: RESOURCE_URL, inPlace, nowMs: NOW * 1_000 });
      assert.equal(refusal?.reason ?? 'genuine', outcome);
    });

  for (const [what, payload, outcome] of rows)
    it(`${what}: ${outcome}`, async () => {
      assert.equal(await verdict(payload), outcome);
    });

  it('signed for another token, chain, name or version is no signature', async () => {
    const { authorization } = valid.payload;
    const elsewhere = [
      { ...terms, asset: freshAddress() },
      { ...terms, chainId: 1 },
      { ...terms, assetName: 'USDC' },
      { ...terms, assetVersion: '1' },
    ];
    for (const other of elsewhere) {
      const signature = await sign(account, authorization, other);
      assert.equal(await verdict({ ...valid, payload: { signature, authorization } }), SIGNATURE);
    }
  });

  it('is judged by no window while our clock is wrong, and by all else', async () => {
    const deps = { clockIsWrong: () => true };
    for (const validBefore of [NOW - 90_000, NOW + 90_000])
      assert.equal(
        await verdict(await payloadFor(account, terms, { validBefore: String(validBefore) }), deps),
        'genuine',
      );
    assert.equal(await verdict(accepting({ network: 'eip155:1' }), deps), 'invalid_network');
  });

  it('names the first check that fails, in the order of the contract', async () => {
    const wrongInAllWays = {
      ...accepting({ network: 'eip155:1', amount: '1' }),
      payload: authorizing({ to: freshAddress(), value: '1', validBefore: '1', validAfter: '9' }).payload,
    };
    assert.equal(await verdict(wrongInAllWays), 'invalid_network');
    assert.equal(await verdict({ ...wrongInAllWays, accepted: { ...offer, amount: '1' } }), REQUIREMENTS);
    assert.equal(await verdict({ ...wrongInAllWays, accepted: offer }), RECIPIENT);
  });
});

describe('who signed', () => {
  const long = `0x${'ab'.repeat(200)}`;
  const withSignature = (signature: string): PaymentPayload => ({ ...valid, payload: { ...valid.payload, signature } });
  const wallets = (answer: WalletVerdict | 'silent'): WalletSignatures => ({
    check: async () => {
      if (answer === 'silent') throw new Error('no answer');
      return answer;
    },
  });
  const signed = wallets({ kind: 'signed', signature: long });
  const unsigned = wallets({ kind: 'refused', reason: SIGNATURE });
  const silent = wallets('silent');
  const never = wallets('silent');
  never.check = () => assert.fail('no wallet has to be asked');
  const leaving = (verdict: RailVerdict): Partial<ExaminerDeps> => ({
    terms: { ...terms, localSignatureCheck: false },
    verifyByRail: async () => verdict,
  });
  const refusing = (reason: string, nonceSpent = false): RailVerdict => ({ kind: 'refused', reason, nonceSpent });
  const NO_NODE = 'contract_signature_not_supported';
  const rows: readonly (readonly [what: string, signature: string, deps: Partial<ExaminerDeps>, outcome: string])[] = [
    ['a stranger, no chain to ask', stranger, {}, SIGNATURE],
    ['a stranger, and the payer denies', stranger, { wallets: unsigned }, SIGNATURE],
    ['a stranger, and the payer confirms', stranger, { wallets: signed }, 'genuine'],
    ['a stranger, the chain silent', stranger, { wallets: silent }, 'unavailable'],
    ['a long signature, no chain to ask', long, {}, NO_NODE],
    ['a long signature, and the payer denies', long, { wallets: unsigned }, SIGNATURE],
    ['a long signature, and the payer confirms', long, { wallets: signed }, 'genuine'],
    ['a short signature, no chain to ask', '0x12', {}, SIGNATURE],
    ['the payer', valid.payload.signature, { wallets: never }, 'genuine'],
    ['the payer, signatures left to the rail', valid.payload.signature, leaving(refusing('x')), 'genuine'],
    ['a stranger, left to a rail that approves', stranger, leaving({ kind: 'valid' }), 'genuine'],
    ['a long signature, left to a rail that refuses', long, leaving(refusing(SIGNATURE)), SIGNATURE],
    ['a long signature, left to a rail that found it spent', long, leaving(refusing('spent', true)), 'genuine'],
    ['a long signature, left to a rail that is away', long, leaving({ kind: 'unavailable', cause: '' }), 'unavailable'],
  ];
  for (const [what, signature, deps, outcome] of rows)
    it(`${what}: ${outcome}`, async () => {
      assert.equal(await verdict(withSignature(signature), deps), outcome);
    });

  it('a payer in the range of precompiled contracts is refused, whatever the chain answers', async () => {
    for (const from of [`0x${'0'.repeat(40)}`, `0x${'4'.padStart(40, '0')}`, `0x${'ffff'.padStart(40, '0')}`]) {
      assert.equal(await verdict(authorizing({ from }), { wallets: signed }), SIGNATURE);
    }
  });

  it('is unproven until the wallet was asked about the digest, and takes the spelling of its answer', async () => {
    const decoded = decodeProof(encodeProof(withSignature(stranger)));
    assert.ok(decoded.kind === 'decoded');
    const asked: string[][] = [];
    const wallet: WalletSignatures = {
      check: async (...question) => {
        asked.push(question);
        return { kind: 'signed', signature: '0x12' };
      },
    };
    const examine = createExaminer({ terms, recover, ...CHECKED_HERE, wallets: wallet });
    const unproven = await examine({ decoded, offer, resourceUrl: RESOURCE_URL, nowMs: NOW * 1_000 }).checkSignature();
    assert.ok(unproven.kind === 'unproven');
    assert.deepEqual(asked, []);
    const proven = await unproven.prove();
    assert.deepEqual(asked, [
      [account.address.toLowerCase(), hashTypedData(typedData(valid.payload.authorization, terms)), stranger],
    ]);
    assert.ok(proven.kind === 'genuine');
    assert.deepEqual([proven.proof.signedBy, proven.proof.payload.payload.signature], ['contract', '0x12']);
  });

  it('gives the signature in the spelling of the chain', async () => {
    const bare = bareV(valid.payload.signature);
    const decoded = decodeProof(encodeProof(withSignature(bare)));
    assert.ok(decoded.kind === 'decoded');
    const examine = createExaminer({ terms, recover, ...CHECKED_HERE });
    const signature = await examine({ decoded, offer, resourceUrl: RESOURCE_URL, nowMs: NOW * 1_000 }).checkSignature();
    assert.ok(signature.kind === 'genuine');
    assert.equal(signature.proof.payload.payload.signature, valid.payload.signature);
    assert.equal(signature.proof.signedBy, 'account');
  });
});

describe('a refusal of the cheap checks', () => {
  it('still has the replay key and can still check the signature, so that a record can answer', async () => {
    const payload = await payable({ validBefore: String(NOW - 3_600) });
    const decoded = decodeProof(encodeProof({ ...payload, accepted: { ...payload.accepted, amount: '20000' } }));
    assert.ok(decoded.kind === 'decoded');
    const examine = createExaminer({ terms, recover, ...CHECKED_HERE });
    const late = examine({ decoded, offer, resourceUrl: RESOURCE_URL, nowMs: NOW * 1_000 });
    assert.equal(late.refusal?.step, 'offer');
    assert.match(late.payId, /^[0-9a-f]{64}$/);
    assert.equal((await late.checkSignature()).kind, 'genuine');
  });
});

const MAX_TIMEOUT_SECONDS = 120;
const TOO_EARLY = 'invalid_exact_evm_payload_authorization_valid_after';
const TOO_LATE = 'invalid_exact_evm_payload_authorization_valid_before';

describe('the window of an authorization', () => {
  /** What is wrong with one that begins and ends so many seconds from now. */
  const fault = (from: number, to: number, leastSeconds?: number, pastMs = 0) =>
    invalidWindow(
      { validAfter: String(NOW + from), validBefore: String(NOW + to) },
      MAX_TIMEOUT_SECONDS,
      NOW * 1_000 + pastMs,
      leastSeconds,
    )?.reason;

  it('may begin 5 s after now, and no later', () => {
    assert.deepEqual([fault(5, 100), fault(6, 100)], [undefined, TOO_EARLY]);
  });

  it('has at least 6 s left, or as many as are needed', () => {
    assert.deepEqual([fault(0, 6), fault(0, 5)], [undefined, TOO_LATE]);
    assert.deepEqual([fault(0, 80, 80), fault(0, 79, 80)], [undefined, TOO_LATE]);
  });

  it('ends at most 600 s after what was offered', () => {
    assert.deepEqual([fault(0, 720), fault(0, 721)], [undefined, TOO_LATE]);
  });

  it('is compared in whole seconds, in favour of the buyer', () => {
    assert.equal(fault(0, 6, undefined, 999), undefined);
  });

  it('of numbers beyond 2^53 is compared all the same', () => {
    const validBefore = (2n ** 256n - 1n).toString();
    assert.deepEqual(invalidWindow({ validAfter: '0', validBefore }, MAX_TIMEOUT_SECONDS, NOW * 1_000), {
      reason: TOO_LATE,
      fault: 'validBefore is too far away: it must be 1800000006 to 1800000720, 6 s to 720 s from now',
    });
  });
});

describe('what must be left where the backend answers first', () => {
  it('is its time, in whole seconds, and 70 s to settle', () => {
    assert.deepEqual([0, 1, 1_000, 1_001, 10_000].map(leastSecondsToPay), [70, 71, 71, 72, 80]);
  });
});

describe('a reservation on the clock of the store', () => {
  it('is too late with less than 6 s left', () => {
    const reservedAt = NOW * 1_000 + 999;
    assert.deepEqual(
      [6, 5].map((left) => tooLate({ reservedAt, validBefore: NOW + left })),
      [undefined, TOO_LATE],
    );
  });

  it('is too late with less left than the checks of its proof ask for', () => {
    assert.deepEqual(
      [80, 79].map((left) => tooLate({ reservedAt: NOW * 1_000 + 999, validBefore: NOW + left }, 80)),
      [undefined, TOO_LATE],
    );
  });
});
