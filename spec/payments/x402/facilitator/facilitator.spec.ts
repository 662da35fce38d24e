import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { SettlementHistory } from '../../../../src/payments/rail.ts';
import { connectFacilitator, type Facilitator } from '../../../../src/payments/x402/facilitator/facilitator.ts';
import { createFailover, STEP_BACK_MS } from '../../../../src/payments/x402/facilitator/remote-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { serveHttp } from '../../../support/http-server.ts';
import { DEADLINES, json, NO_VERDICT, noWriteAhead, remoteRail, text } from '../hostile.ts';
import { freshAccount, freshAddress, genuineProof, nowSeconds, offerFor, termsFor } from '../signing.ts';

const NONE = { kind: 'none' };
const REFUSED = { kind: 'denied' };

/** Names are hosts; no call here reaches the network. */
function lineOf(names: readonly string[]) {
  let now = 1_000;
  const line = createFailover(
    names.map((name) => connectFacilitator(`http://${name}.invalid`, () => ({ type: 'none' }))),
    () => now,
  );
  /** The facilitators that were asked, with their deadlines; each takes `takes` milliseconds. */
  const ask = async (answers: Readonly<Record<string, { readonly kind: string }>>, takes = 0) => {
    const asked: (readonly [name: string, deadlineMs: number])[] = [];
    for (const turn of line.turns(6_000)) {
      const answer = await turn.ask(async ({ name }: Facilitator, deadlineMs) => {
        asked.push([name.replace('.invalid', ''), deadlineMs]);
        now += takes;
        return answers[name.replace('.invalid', '')] ?? NONE;
      });
      if (answer.kind !== 'none') break;
    }
    return asked;
  };
  const order = async (answers: Readonly<Record<string, { readonly kind: string }>>) =>
    (await ask(answers)).map(([name]) => name).join('');
  return { ask, order, pass: (ms: number) => (now += ms) };
}

describe('the order of facilitators', () => {
  it('asks the next one only while there is no verdict, and a refusal is one', async () => {
    const { order } = lineOf(['a', 'b', 'c']);
    assert.equal(await order({ a: REFUSED }), 'a');
    assert.equal(await order({ b: REFUSED }), 'ab');
  });

  it('asks one that gave no verdict last, for ten seconds', async () => {
    const { order, pass } = lineOf(['a', 'b', 'c']);
    await order({ b: REFUSED });
    pass(STEP_BACK_MS - 1);
    assert.equal(await order({ c: REFUSED }), 'bc');
    pass(1);
    assert.equal(await order({ a: REFUSED }), 'a');
  });

  it('asks those that failed in the order in which they did, and never leaves one out', async () => {
    const { order, pass } = lineOf(['a', 'b', 'c']);
    await order({ b: REFUSED });
    pass(5);
    assert.equal(await order({}), 'bca');
  });

  it('restores the order with the next verdict', async () => {
    const { order } = lineOf(['a', 'b']);
    await order({});
    assert.equal(await order({ a: REFUSED }), 'a');
    assert.equal(await order({ a: REFUSED }), 'a');
  });

  it('leaves each one a share of the time that is left', async () => {
    assert.deepEqual(await lineOf(['a']).ask({}), [['a', 6_000]]);
    const quick = await lineOf(['a', 'b', 'c']).ask({});
    assert.deepEqual(quick, [['a', 2_000], ['b', 3_000], ['c', 6_000]]); // biome-ignore format: a table
    const slow = await lineOf(['a', 'b']).ask({}, 3_000);
    assert.deepEqual(slow, [['a', 3_000], ['b', 3_000]]); // biome-ignore format: a table
    const late = await lineOf(['a', 'b']).ask({}, 6_000);
    assert.deepEqual(late, [['a', 3_000]]);
  });
});

const terms = termsFor();
const offer = offerFor(terms);
const { network } = terms;
const account = freshAccount();
const payer = account.address;
const hash = INVENTED_TRANSACTION;
const SPENT = 'invalid_exact_evm_nonce_already_used';

const settled = (changes: object = {}): object => ({
  success: true,
  transaction: hash,
  network,
  payer,
  ...changes,
});
const denied = (errorReason: unknown, changes: object = {}): object => ({
  success: false,
  errorReason,
  transaction: '',
  network,
  ...changes,
});

describe('a remote facilitator', () => {
  let facilitator: HostileFacilitator;
  let rail: PaymentRail & { close(): Promise<void> };
  let proof: Proof;

  before(async () => {
    facilitator = await startHostileFacilitator(network);
    const auth = { type: 'bearer', token: 'a-facilitator-token' } as const;
    rail = remoteRail([`${facilitator.url}/`], { network }, auth);
    proof = await genuineProof(account, terms);
  });
  beforeEach(() => facilitator.script({}));
  after(async () => {
    await rail.close();
    await facilitator.stop();
  });

  const verify = (answer: ScriptedAnswer) => {
    facilitator.script({ verify: () => answer });
    return rail.verify(proof, offer);
  };
  const settle = (answer: ScriptedAnswer, history?: SettlementHistory) => {
    facilitator.script({ settle: () => answer });
    return rail.settle(proof, offer, noWriteAhead, history);
  };

  it('is sent our requirement and no unknown member of the echo, with its credentials', async () => {
    const doctored: Proof = {
      ...proof,
      payload: {
        ...proof.payload,
        accepted: { ...proof.payload.accepted, maxTimeoutSeconds: 9, extra: { ...offer.extra, note: 'spam' } },
        resource: { url: proof.payload.resource?.url ?? '', description: 'spam' },
        extensions: { bazaar: { info: 'spam' }, 'payment-identifier': { info: { id: 'a'.repeat(16) } } },
      },
    };
    assert.deepEqual(await rail.verify(doctored, offer), { kind: 'valid' });
    const { body, headers } = facilitator.calls.at(-1) ?? assert.fail('no call');
    assert.deepEqual(body, {
      x402Version: 2,
      paymentPayload: {
        x402Version: 2,
        resource: { url: proof.payload.resource?.url },
        accepted: offer,
        payload: proof.payload.payload,
        extensions: { 'payment-identifier': { info: { id: 'a'.repeat(16) } } },
      },
      paymentRequirements: offer,
    });
    assert.equal(headers['authorization'], 'Bearer a-facilitator-token');
  });

  it('is sent our entry for its catalogue, whatever the buyer echoed, with the login of the last reload', async () => {
    const resource = { url: 'https://shop.example/mcp', description: 'Prices', mimeType: 'text/csv' };
    const extension = { info: { input: { type: 'mcp', toolName: 'report' } }, schema: {} };
    const cataloguing = remoteRail([facilitator.url], { network });
    const auth = { type: 'bearer', token: 'renewed' } as const;
    cataloguing.renew({ mode: 'remote', url: facilitator.url, auth, fallbacks: [] }, () => ({ resource, extension }));
    try {
      await cataloguing.verify(proof, offer);
      await cataloguing.settle(proof, offer, noWriteAhead);
      for (const { body, headers } of facilitator.calls.slice(-2)) {
        assert.equal(headers['authorization'], 'Bearer renewed');
        const { paymentPayload } = body as { readonly paymentPayload: Proof['payload'] };
        assert.deepEqual([paymentPayload.resource, paymentPayload.extensions], [resource, { bazaar: extension }]);
      }
    } finally {
      await cataloguing.close();
    }
  });

  for (const [what, answer] of NO_VERDICT)
    it(`gives no verdict with ${what}: unavailable before, uncertain after settlement began`, async () => {
      const begun = performance.now();
      assert.equal((await verify(answer)).kind, 'unavailable');
      const settlement = await settle(answer);
      assert.ok(performance.now() - begun < 3 * (DEADLINES.verifyMs + DEADLINES.settleMs), 'far too slow');
      assert.equal(settlement.kind, 'uncertain');
      assert.ok(!('transaction' in settlement));
    });

  it('that cannot be reached is unavailable, and uncertain once settling', async () => {
    const absent = remoteRail(['http://127.0.0.1:9'], { network });
    assert.equal((await absent.verify(proof, offer)).kind, 'unavailable');
    assert.equal((await absent.settle(proof, offer, noWriteAhead)).kind, 'uncertain');
    assert.equal((await absent.check())?.found, 'unreachable');
    await absent.close();
  });

  describe('at /verify', () => {
    const SIGNATURE = 'invalid_exact_evm_payload_signature';
    const rows: readonly (readonly [what: string, answer: ScriptedAnswer, verdict: object])[] = [
      ['approval', json({ isValid: true, payer }), { kind: 'valid' }],
      ['approval without a payer', json({ isValid: true }), { kind: 'valid' }],
      ['approval in a 4xx', json({ isValid: true, payer: payer.toLowerCase() }, 400), { kind: 'valid' }],
      ['refusal', json({ isValid: false, invalidReason: 'insufficient_funds' }), refused('insufficient_funds')],
      [
        'refusal in a 4xx',
        json({ isValid: false, invalidReason: 'insufficient_funds' }, 402),
        refused('insufficient_funds'),
      ],
      [
        'refusal in the vocabulary of the packages',
        json({ isValid: false, invalidReason: 'invalid_exact_evm_signature' }),
        refused(SIGNATURE),
      ],
      ['refusal with a foreign reason', json({ isValid: false, invalidReason: 'kyt_blocked' }), refused('kyt_blocked')],
      ['refusal in prose', json({ isValid: false, invalidReason: 'Error: 0xdead failed' }), refused('payment_refused')],
      ['refusal without a reason', json({ isValid: false }), refused('payment_refused')],
      [
        'refusal for a spent nonce',
        json({ isValid: false, invalidReason: SPENT }),
        { ...refused(SPENT), nonceSpent: true },
      ],
    ];
    for (const [what, answer, verdict] of rows)
      it(`${what}`, async () => {
        assert.deepEqual(await verify(answer), verdict);
      });

    it('approval for another payer is no verdict', async () => {
      assert.equal((await verify(json({ isValid: true, payer: freshAddress() }))).kind, 'unavailable');
    });

    it('a connection that breaks is tried once more', async () => {
      const answers: ScriptedAnswer[] = [{ kind: 'reset' }, json({ isValid: true })];
      facilitator.script({ verify: () => answers.shift() ?? assert.fail('asked a third time') });
      assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
    });
  });

  it('without a chain to ask, an unfinished payment may be sent again while it is valid, and is unknown after', async () => {
    assert.equal((await rail.reconcile(proof, offer)).kind, 'open');
    const old = await genuineProof(account, terms, { validBefore: String(nowSeconds()) });
    assert.equal(
      (await rail.reconcile(old, offer, { sentBefore: true, transaction: INVENTED_TRANSACTION })).kind,
      'unknown',
    );
  });

  describe('at /settle, without a chain', () => {
    const CLAIMED = { kind: 'settled', evidence: 'claim', transaction: hash };
    const UNSENT = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' };
    const OPEN = { kind: 'uncertain' };
    const NAMED = { kind: 'uncertain', transaction: hash };
    const rows: readonly (readonly [what: string, answer: ScriptedAnswer, outcome: object])[] = [
      ['success', json(settled()), CLAIMED],
      ['success without a payer', json(settled({ payer: undefined })), CLAIMED],
      ['success in a 5xx', json(settled(), 500), CLAIMED],
      ['success, hash in capitals', json(settled({ transaction: `0x${'AB'.repeat(32)}` })), CLAIMED],
      ['success on another network', json(settled({ network: 'eip155:1' })), OPEN],
      ['success on no network', json(settled({ network: undefined })), OPEN],
      ['success without a hash', json(settled({ transaction: '' })), OPEN],
      ['success with a malformed hash', json(settled({ transaction: '0xabc' })), OPEN],
      ['success with a hash that is no text', json(settled({ transaction: { toString: 1 } })), OPEN],
      ['success for another payer', json(settled({ payer: freshAddress() })), NAMED],
      ['success for a payer that is no text', json(settled({ payer: 7 })), NAMED],
      ['definite refusal', json(denied('insufficient_funds')), UNSENT],
      ['definite refusal in a 4xx', json(denied('insufficient_funds'), 400), UNSENT],
      [
        'definite refusal in the vocabulary of the packages',
        json(denied('invalid_exact_evm_recipient_mismatch')),
        { kind: 'refused', reason: 'invalid_exact_evm_payload_recipient_mismatch', evidence: 'unsent' },
      ],
      ['refusal with a hash', json(denied('insufficient_funds', { transaction: hash })), NAMED],
      ['refusal with a malformed hash', json(denied('insufficient_funds', { transaction: '0x1' })), OPEN],
      ['pending with a hash', json(denied('settlement_pending', { transaction: hash })), NAMED],
      ['pending without a hash', json(denied('settlement_pending')), OPEN],
      ['a failed transaction', json(denied('invalid_exact_evm_transaction_failed')), OPEN],
      ['a spent nonce', json(denied(SPENT)), OPEN],
      ['an unexpected error', json(denied('unexpected_settle_error')), OPEN],
      ['a foreign reason', json(denied('kyt_blocked')), OPEN],
      ['a reason in prose', json(denied('Something went wrong')), OPEN],
    ];
    for (const [what, answer, outcome] of rows)
      it(`${what}: ${'kind' in outcome ? outcome.kind : ''}`, async () => {
        const settlement = await settle(answer);
        const { cause: _cause, ...facts } = { cause: '', ...settlement };
        assert.deepEqual(facts, outcome);
      });

    it('a definite refusal of a second attempt proves nothing about the first', async () => {
      const settlement = await settle(json(denied('insufficient_funds')), { sentBefore: true });
      assert.equal(settlement.kind, 'uncertain');
    });

    describe('that an earlier attempt may have sent', () => {
      const sentBefore = true;
      it('stays uncertain when its nonce is used, and the transaction that used it is not taken for ours', async () => {
        assert.equal((await settle(json(denied(SPENT)), { sentBefore })).kind, 'uncertain');
        const inOtherWords = json(denied('invalid_exact_evm_payload_nonce_already_used', { transaction: hash }), 400);
        const settlement = await settle(inOtherWords, { sentBefore });
        assert.deepEqual([settlement.kind, settlement.transaction], ['uncertain', undefined]);
      });

      it('stays uncertain without a verdict', async () => {
        assert.equal((await settle(json(denied(SPENT), 503), { sentBefore })).kind, 'uncertain');
        assert.equal((await settle(json({ error: SPENT }), { sentBefore })).kind, 'uncertain');
      });

      it('is unknown once it is too late to send it again', async () => {
        const old = await genuineProof(account, terms, { validBefore: String(nowSeconds()) });
        facilitator.script({ verify: () => json({ isValid: false, invalidReason: SPENT }) });
        assert.equal((await rail.reconcile(old, offer, { sentBefore })).kind, 'unknown');
      });
    });

    it('is asked once, even when the connection breaks', async () => {
      const before = facilitator.calls.length;
      await settle({ kind: 'reset' });
      assert.equal(facilitator.calls.length, before + 1);
    });

    it('is not asked to settle what does not pay the offer', async () => {
      const before = facilitator.calls.length;
      const dearer = { ...offer, amount: '20000' };
      assert.equal((await rail.verify(proof, dearer)).kind, 'refused');
      assert.equal((await rail.settle(proof, dearer, noWriteAhead)).kind, 'uncertain');
      assert.equal(facilitator.calls.length, before);
    });
  });

  describe('at /supported', () => {
    const kinds = (kind: object): ScriptedAnswer =>
      json({ kinds: [{ x402Version: 2, scheme: 'exact', network, ...kind }] });
    const rows: readonly (readonly [what: string, answer: ScriptedAnswer, healthy: boolean])[] = [
      ['our network', kinds({}), true],
      ['the family of our network', kinds({ network: 'eip155:*' }), true],
      ['another network', kinds({ network: 'eip155:1' }), false],
      ['another scheme', kinds({ scheme: 'upto' }), false],
      ['version 1 only', kinds({ x402Version: 1 }), false],
      ['HTML', text('<html>', 'text/html'), false],
      ...[201, 204, 301, 302, 303, 307, 308, 400, 401, 404, 405, 410, 422, 429, 503].map(
        (status) => [`${status}`, { ...kinds({}), status }, false] as const,
      ),
    ];
    for (const [what, answer, healthy] of rows)
      it(`${what}: ${healthy ? 'ready' : 'not ready'}`, async () => {
        facilitator.script({ supported: () => answer });
        assert.equal((await rail.check()) === undefined, healthy);
      });

    for (const status of [301, 302, 303])
      it(`${status}: names where it leads`, async () => {
        const location = '/v2/supported?key=private';
        facilitator.script({ supported: () => ({ kind: 'redirect', status, location }) });
        const cause = (await rail.check())?.cause ?? '';
        assert.match(cause, new RegExp(`answered ${status} and leads to /v2/supported: name that`));
        assert.doesNotMatch(cause, /private/);
      });
  });

  describe('that redirects with 307 or 308', () => {
    /** Answers at `/moved`, to which every other path leads. */
    const movedTo = async (base: string, status: number) => {
      const server = await serveHttp(({ request: { method = '', url = '' }, response, body }) => {
        const path = url.replace('/moved', '');
        if (url === path) return void response.writeHead(status, { location: base + path }).end();
        assert.equal(method, path === '/supported' ? 'GET' : 'POST');
        if (method === 'POST') assert.ok(body.length > 0);
        const { from: payer } = proof.payload.payload.authorization;
        const kinds = [{ x402Version: 2, scheme: 'exact', network }];
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify(path === '/supported' ? { kinds } : { isValid: true, payer }));
      });
      return { server, rail: remoteRail([server.url], { network }) };
    };

    for (const status of [307, 308])
      it(`${status}: is followed within its site`, async () => {
        const { server, rail: moved } = await movedTo('/moved', status);
        try {
          assert.equal(await moved.check(), undefined);
          assert.equal((await moved.verify(proof, offer)).kind, 'valid');
        } finally {
          await moved.close();
          await server.stop();
        }
      });

    it('is not followed to another site, nor for ever', async () => {
      for (const [base, cause] of [
        [facilitator.url, /answered 308 and leads to http/],
        ['', /answered 308/],
      ] as const) {
        const asked = facilitator.calls.length;
        const { server, rail: moved } = await movedTo(base, 308);
        try {
          assert.match((await moved.check())?.cause ?? '', cause);
          assert.notEqual((await moved.verify(proof, offer)).kind, 'valid');
          assert.equal(facilitator.calls.length, asked);
        } finally {
          await moved.close();
          await server.stop();
        }
      }
    });
  });
});

function refused(reason: string) {
  return { kind: 'refused', reason, nonceSpent: false };
}
