import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import type { RailVerdict, Reading } from '../../../src/payments/rail.ts';
import { PAYMENT_CHANNEL } from '../../../src/payments/settlement/attempt.ts';
import { PAYER_SETTLEMENTS, SLOT_WAIT_MS } from '../../../src/payments/settlement/places.ts';
import { joining, type Settler } from '../../../src/payments/settlement/settle.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { proofDigest } from '../../../src/payments/x402/verify/verify.ts';
import type { Proof } from '../../../src/payments/x402/wire/types.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { rest, type VirtualTime, virtualTime } from './virtual-time.ts';
import { freshTerms, HASH, PAID, refusalIn, worldOfEachTest } from './world.ts';

/** Listens to the steps of one payment. `end` stops listening and gives them in order. */
function stepsOf(channel: string, payId: string): { end(): readonly string[] } {
  const steps: string[] = [];
  const note = (message: unknown): void => {
    const passed = message as { readonly step: string; readonly payId: string };
    if (passed.payId === payId) steps.push(passed.step);
  };
  subscribe(channel, note);
  return {
    end() {
      unsubscribe(channel, note);
      return steps;
    },
  };
}

const UNSENT = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' } as const;
const PROOF = 'A'.repeat(22);
const NO_FUNDS = { kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const;

describe('the settler', () => {
  const world = worldOfEachTest();
  const { requestWith, settleOnce, later, record, state, types, receipts, broken, silent } = world;

  it('paid: verify, then settle, with state, receipt and events in the same writes', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid' && result.kept === undefined);
    assert.deepEqual(world.peer.asked, [
      { what: 'verify', amount: '7' },
      { what: 'settle', amount: '7', sentBefore: false },
    ]);
    const { state, evidence, transaction } = result.record;
    assert.deepEqual([state, evidence, transaction], ['settled', 'logs', HASH]);
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
    const [receipt, ...others] = await receipts();
    assert.deepEqual(
      [receipt?.id, receipt?.delivered, receipt?.payment?.externalReference, receipt?.metadata, others.length],
      [world.terms.receiptId, false, HASH, { callId: world.terms.callId }, 0],
    );
    assert.deepEqual(world.flushed, [], 'nothing went another way');
  });

  it('reports each step of a payment when it has passed it', async () => {
    const steps = stepsOf(PAYMENT_CHANNEL, world.terms.payId);
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      return PAID;
    };
    await settleOnce();
    assert.deepEqual(steps.end(), ['verified', 'settling', 'sending', 'signed', 'answered', 'settled']);
  });

  it('the lease stays with a call that was paid, and with no other', async () => {
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual([...world.held], [world.terms.payId]);
    world.held.clear();
    for (const settle of [async () => UNSENT, async () => ({ kind: 'uncertain', cause: 'cut' }) as const]) {
      world.terms = freshTerms();
      world.peer.script.settle = settle;
      await settleOnce();
      assert.deepEqual([...world.held], []);
    }
    world.terms = freshTerms();
    await assert.rejects(settleOnce({}, broken({ reserve: world.away })));
    assert.deepEqual([...world.held], []);
  });

  it('the transaction is in the ledger before it is sent, and is not sent when it cannot be', async () => {
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      const { transaction, rawTransaction } = (await record()) ?? {};
      assert.deepEqual([transaction, rawTransaction], [HASH, '0xraw']);
      return PAID;
    };
    assert.equal((await settleOnce()).kind, 'paid');

    world.terms = freshTerms();
    let sent = false;
    world.peer.script.settle = async (write) => {
      await write({ hash: HASH, raw: '0xraw' });
      sent = true;
      return PAID;
    };
    const fenced = broken({ note: async () => ({ kind: 'fenced' }) });
    assert.equal((await settleOnce({}, fenced)).kind, 'uncertain');
    assert.equal(sent, false);
  });

  describe('refusals', () => {
    it('before anything was sent: the reservation is gone, the proof may come again', async () => {
      world.peer.script.verify = async () => NO_FUNDS;
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'verify',
        recorded: false,
      });
      assert.equal(await record(), undefined);
      world.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await settleOnce()).kind, 'paid');
    });

    it('no verdict: 503 material, the reservation is gone', async () => {
      world.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'down' });
      assert.equal((await settleOnce()).kind, 'unavailable');
      assert.equal(await record(), undefined);
    });

    it('by a call that lost its lease meanwhile: in flight', async () => {
      world.peer.script.verify = async () => {
        later(20_000);
        world.peer.script.verify = async () => ({ kind: 'valid' });
        assert.equal((await settleOnce({}, broken({}))).kind, 'paid', 'in another process');
        return NO_FUNDS;
      };
      assert.equal((await settleOnce()).kind, 'in_flight');
      assert.equal(await state(), 'settled');
    });

    it('by the settlement: final, with its event in the same write, and the same answer for the same proof', async () => {
      world.peer.script.settle = async () => UNSENT;
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: true,
      });
      assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.rejected']);
      assert.deepEqual(refusalIn(await settleOnce()), {
        reason: 'insufficient_funds',
        phase: 'settle',
        recorded: false,
      });
      assert.deepEqual(world.peer.names(), ['verify', 'settle']);
      assert.deepEqual(await receipts(), [], 'nothing was paid');
    });

    it('that another attempt has overtaken are in flight, those that the store does not take uncertain, never a 402', async () => {
      world.peer.script.settle = async () => UNSENT;
      for (const [answer, kind] of [
        [async () => ({ kind: 'fenced' }) as const, 'in_flight'],
        [async () => ({ kind: 'lost' }) as const, 'uncertain'],
        [silent, 'uncertain'],
      ] as const) {
        world.terms = freshTerms();
        assert.equal((await settleOnce({}, world.brokenAt('refused', answer))).kind, kind);
      }
    });
  });

  it('a claim without a reply is repeated, and settled once', async () => {
    let asked = 0;
    const reserve: PaymentLedger['reserve'] = async (command) => {
      asked += 1;
      const answer = await world.ledger.reserve(command);
      return asked === 1 ? silent() : answer;
    };
    assert.equal((await settleOnce({}, broken({ reserve }))).kind, 'paid');
    assert.deepEqual([asked, world.peer.names()], [2, ['verify', 'settle']]);
    assert.deepEqual(await types(), ['resource.requested', 'payment.verified', 'payment.settled']);
  });

  it('a claim that no reply confirms is uncertain: nothing is sent, and another attempt settles what stands', async () => {
    const reserve: PaymentLedger['reserve'] = async (command) => {
      await world.ledger.reserve(command);
      return silent();
    };
    const result = await settleOnce({}, broken({ reserve }));
    assert.equal(result.kind, 'uncertain');
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.partialDeepStrictEqual(await record(), { state: 'settling', leaseUntil: 0 });
    assert.equal((await settleOnce({ left: undefined })).kind, 'paid');
  });

  it('a claim that comes too late in the window of its proof begins nothing', async () => {
    world.peer.script.verify = async () => {
      later(115_000);
      return { kind: 'valid' };
    };
    assert.deepEqual(refusalIn(await settleOnce({ proof: PROOF })), {
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      phase: 'verify',
      recorded: false,
    });
    assert.deepEqual([await record(), world.peer.names()], [undefined, ['verify', 'reconcile']]);
  });

  it('a claim finds the refusal of a copy: its buyer was asked to pay anew, so nothing is sent', async () => {
    world.peer.script.verify = async () => {
      world.peer.script.verify = async () => NO_FUNDS;
      assert.equal((await settleOnce({ proof: PROOF }, broken({}))).kind, 'refused', 'in another process');
      return { kind: 'valid' };
    };
    assert.equal(refusalIn(await settleOnce({ proof: PROOF })) !== undefined, true);
    assert.deepEqual(world.peer.names(), ['verify', 'verify']);
  });

  it('a store that is away before anything was sent: the call fails, nothing is sent, its events still reach the feed', async () => {
    const placed = requestWith();
    await assert.rejects(world.settler(broken({ reserve: world.away })).settle(placed), StoreError);
    assert.deepEqual(world.peer.names(), ['verify']);
    placed.journal.flush();
    assert.deepEqual(world.flushedTypes(), ['resource.requested']);
  });
});

describe('the connection to the backend before the money', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, receipts, types, broken } = world;

  it('cannot be had: nothing is settled, kept or recorded, and the same proof pays later', async () => {
    world.reachable = false;
    const { cause: _cause, ...result } = (await settleOnce()) as Extract<SettlementResult, { kind: 'postponed' }>;
    assert.deepEqual(result, { kind: 'postponed', reason: 'backend_unreachable' });
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.equal(await record(), undefined);
    assert.deepEqual([await types(), await receipts(), world.held.size], [[], [], 0]);
    world.reachable = true;
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('is held after the rail verified and before anything is written that another process could settle', async () => {
    const seen: string[] = [];
    const reserveBackend = async () => {
      seen.push(`${world.peer.names().join()} ${(await record())?.state}`);
      return world.reserveBackend();
    };
    world.peer.script.settle = async () => {
      seen.push(`${(await record())?.state} with ${world.connections}`);
      return PAID;
    };
    assert.equal((await settleOnce({ reserveBackend })).kind, 'paid');
    assert.deepEqual(seen, ['verify undefined', 'settling with 1']);
  });

  it('goes with the payment, for its delivery', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid' && result.held !== undefined);
    assert.equal(world.connections, 1);
    result.held.release();
    assert.equal(world.connections, 0);
  });

  for (const [why, prepare] of [
    [
      'the rail refuses after all',
      () => (world.peer.script.settle = async () => ({ kind: 'refused', reason: 'no', evidence: 'unsent' })),
    ],
    [
      'the end is uncertain',
      () => (world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer' })),
    ],
    ['the rail throws', () => (world.peer.script.settle = () => Promise.reject(new Error('bug')))],
  ] as const)
    it(`is given back: ${why}`, async () => {
      prepare();
      assert.notEqual((await settleOnce()).kind, 'paid');
      assert.equal(world.connections, 0);
    });

  it('is given back: the gate closes, and the store is away', async () => {
    const reserveBackend = () => {
      world.gateOpen = false;
      return world.reserveBackend();
    };
    assert.equal((await settleOnce({ reserveBackend })).kind, 'gate_closed');
    world.gateOpen = true;
    await assert.rejects(settleOnce({}, broken({ reserve: world.away })), StoreError);
    assert.equal(world.connections, 0);
  });

  it('cannot be had when a withdrawn payment begins anew: it stays withdrawn, for the same proof', async () => {
    world.peer.script.settle = async () => ({ kind: 'withdrawn', reason: 'relayer_unfunded', cause: 'no gas' });
    assert.equal((await settleOnce()).kind, 'postponed');
    assert.equal(world.connections, 0);
    world.reachable = false;
    world.peer.script.settle = async () => PAID;
    const result = await settleOnce();
    assert.ok(result.kind === 'postponed' && result.reason === 'backend_unreachable');
    assert.equal((await record())?.state, 'withdrawn');
    world.reachable = true;
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('is not needed for what was paid before', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    result.held?.release();
    world.reachable = false;
    await world.recorder().undelivered(result.record, {
      ...world.facts(result),
      failure: { code: 'backend_status_500' },
      requestWritten: false,
      repeatable: true,
    });
    const collected = await settleOnce();
    assert.ok(collected.kind === 'paid' && collected.held === undefined);
  });
});

describe('a payer at its bound of settlements under way', () => {
  const world = worldOfEachTest();
  const { requestWith, pay, later } = world;
  let time: VirtualTime;
  let settler: Settler;
  let answer: PromiseWithResolvers<RailVerdict>;
  let first: readonly Promise<SettlementResult>[];

  beforeEach(async () => {
    time = virtualTime();
    Object.assign(world, { time });
    world.terms = { ...freshTerms(), payer: `0x${'A'.repeat(40)}` };
    settler = world.settler();
    answer = Promise.withResolvers<RailVerdict>();
    world.peer.script.verify = () => answer.promise;
  });
  /** The payer is spelled otherwise. */
  const ofSamePayer = () => ({ ...freshTerms(), payer: `0x${'a'.repeat(40)}` });
  const fillUp = async (): Promise<void> => {
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
    await rest();
    assert.equal(world.peer.names().length, PAYER_SETTLEMENTS);
  };
  const finish = async (): Promise<void> => {
    answer.resolve({ kind: 'valid' });
    await Promise.all(first);
  };

  it('is crowded, and nothing was asked, sent or kept; the same proof then buys', async () => {
    await fillUp();
    const result = settler.settle(requestWith());
    await rest();
    assert.equal(await world.state(), 'reserved');
    await time.pass(SLOT_WAIT_MS);
    assert.equal((await result).kind, 'crowded');
    assert.deepEqual([await world.state(), world.peer.names().length], [undefined, PAYER_SETTLEMENTS]);
    await finish();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
  });

  it('needs one slot for all copies of a proof', async () => {
    const copies = joining(settler, world.ledger, time);
    const same = Array.from({ length: 3 * PAYER_SETTLEMENTS }, () => copies.settle(requestWith()));
    await rest();
    assert.deepEqual(world.peer.names(), ['verify']);
    first = [settler.settle(requestWith({ terms: freshTerms() }))];
    await rest();
    assert.equal(world.peer.names().length, 2, 'another purchase has room');
    await finish();
    await time.pass(SLOT_WAIT_MS);
    assert.ok((await Promise.all(same)).every(({ kind }) => kind === 'paid' || kind === 'in_flight'));
  });

  it('collects what was paid and not delivered all the same', async () => {
    world.peer.script.verify = async () => ({ kind: 'valid' });
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 0 });
    const asked = world.peer.names().length;
    world.peer.script.verify = () => answer.promise;
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
    await rest();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
    assert.equal(world.peer.names().length, asked + PAYER_SETTLEMENTS);
    await finish();
  });

  const readings: readonly (readonly [what: string, reading: Reading, result: SettlementResult['kind']])[] = [
    ['shown by the chain is answered', PAID, 'paid'],
    ['still open stays open, and nothing is sent', { kind: 'open' }, 'uncertain'],
  ];
  for (const [what, reading, expected] of readings)
    it(`an earlier settlement ${what}`, async () => {
      world.peer.script.verify = async () => ({ kind: 'valid' });
      world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'slow' });
      assert.equal((await settler.settle(requestWith())).kind, 'uncertain');
      later(10_000);
      world.peer.script.verify = () => answer.promise;
      world.peer.script.reconcile = async () => reading;
      first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
      await rest();
      const settles = world.peer.names().filter((name) => name === 'settle').length;
      const result = settler.settle(requestWith());
      await time.pass(SLOT_WAIT_MS);
      assert.equal((await result).kind, expected);
      assert.equal(world.peer.names().filter((name) => name === 'settle').length, settles);
      await finish();
    });
});

describe('a call whose client leaves, or whose gate closes', () => {
  const world = worldOfEachTest();
  const { settleOnce, record } = world;
  let leaving: AbortController;
  beforeEach(() => {
    leaving = new AbortController();
  });

  for (const [how, ending, kind] of [
    ['leaves', () => leaving.abort(), 'gone'],
    ['closes', () => Object.assign(world, { gateOpen: false }), 'gate_closed'],
  ] as const) {
    it(`${how} before it is reserved: asks no peer and writes nothing`, async () => {
      ending();
      assert.deepEqual(await settleOnce({ left: leaving.signal }), { kind });
      assert.deepEqual([await record(), world.peer.names()], [undefined, []]);
    });

    it(`${how} while the rail verifies: nothing is written or sent, and the proof is as good as before`, async () => {
      world.peer.script.verify = async () => {
        ending();
        return { kind: 'valid' };
      };
      assert.deepEqual(await settleOnce({ left: leaving.signal }), { kind });
      assert.deepEqual([await record(), world.peer.names()], [undefined, ['verify']]);
      world.gateOpen = true;
      world.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await settleOnce()).kind, 'paid');
    });
  }

  it('closes once the settlement was begun: another process may go on, so the outcome is open', async () => {
    const reserve: PaymentLedger['reserve'] = async (command) => {
      const answer = await world.ledger.reserve(command);
      world.gateOpen = false;
      return answer;
    };
    assert.equal((await settleOnce({}, world.broken({ reserve }))).kind, 'uncertain');
    assert.deepEqual(world.peer.names(), ['verify']);
  });

  it('leaves while it is reserved: the backend is not called, and the reservation is given back', async () => {
    const reserve = world.broken({
      async reserve(command) {
        const reservation = await world.ledger.reserve(command);
        leaving.abort();
        return reservation;
      },
    });
    assert.deepEqual(await world.settleAfter({ left: leaving.signal }, reserve), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names(), world.backend.called], [undefined, [], []]);
  });

  it('leaves once the settlement was begun: it goes on, because money may move', async () => {
    world.peer.script.settle = async () => {
      leaving.abort();
      return PAID;
    };
    assert.equal((await settleOnce({ left: leaving.signal })).kind, 'paid');
  });

  it('leaves: it waits for no other copy any longer', async () => {
    world.terms = { ...world.terms, tokenDigest: 'b'.repeat(64) };
    await world.pay();
    const time = virtualTime();
    const copy = joining(world.settler(), world.ledger, time).settle(world.requestWith({ left: leaving.signal }));
    await time.pass(10);
    leaving.abort();
    assert.deepEqual(await copy, { kind: 'gone' });
  });

  it('has no client at its start: begins nothing', async () => {
    assert.deepEqual(await settleOnce({ left: undefined }), { kind: 'gone' });
    assert.deepEqual([await record(), world.peer.names()], [undefined, []]);
  });
});

describe('a proof that the provider refused', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record } = world;
  const PROOF = 'AAAAAAAAAAAAAAAAAAAAAA';

  it('is refused again, with the first reason and without a question, until it is too old', async () => {
    world.peer.script.verify = async () => NO_FUNDS;
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'refused');
    world.peer.script.verify = async () => ({ kind: 'valid' });
    world.peer.asked.length = 0;
    const copy = await settleOnce({ proof: PROOF });
    assert.ok(copy.kind === 'refused');
    const { reason, phase, recorded } = copy.owed;
    assert.deepEqual({ reason, phase, recorded }, { reason: 'insufficient_funds', phase: 'verify', recorded: false });
    assert.deepEqual([world.peer.names(), await record()], [[], undefined]);
    later(119_000);
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'refused');
    later(2_000);
    world.peer.script.seesChain = false;
    const late = await settleOnce({ proof: PROOF });
    assert.ok(late.kind === 'refused' && late.owed.reason === 'invalid_exact_evm_payload_authorization_valid_before');
  });

  it('does not count for another proof with the same replay key', async () => {
    world.peer.script.verify = async () => NO_FUNDS;
    await settleOnce({ proof: 'BBBBBBBBBBBBBBBBBBBBBB' });
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'paid');
  });

  it('refused before the provider was asked, or not refused at all: nothing is remembered', async () => {
    world.peer.script.seesChain = false;
    assert.equal((await settleOnce({ proof: PROOF, refusal: 'invalid_network' })).kind, 'refused');
    world.peer.script.verify = async () => ({ kind: 'unavailable', cause: 'away' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'unavailable');
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce({ proof: PROOF })).kind, 'paid');
  });
});

describe('the digest of a proof', () => {
  const R_S = `${'1'.repeat(64)}${'2'.repeat(64)}`;
  const proof = (signature: string, more: object = {}): Proof => {
    const authorization = {
      from: '0xa',
      to: '0xB',
      value: '7',
      validAfter: '0',
      validBefore: '9',
      nonce: '0x1',
      ...more,
    };
    return { payId: 'p', payload: { payload: { signature, authorization } } } as unknown as Proof;
  };

  it('is short, and one for all spellings of a signature', () => {
    const digest = proofDigest(proof(`0x${R_S}1b`));
    assert.match(digest, /^[A-Za-z0-9_-]{24}$/);
    assert.equal(proofDigest(proof(`0x${R_S.toUpperCase()}00`, { to: '0xb' })), digest);
  });

  it('is another for another signature, or for another thing signed', () => {
    const others = [
      proof(`0x${R_S}1c`),
      proof(`0x${'3'.repeat(600)}`),
      ...['value', 'validAfter', 'validBefore', 'to'].map((name) => proof(`0x${R_S}1b`, { [name]: '8' })),
    ].map(proofDigest);
    assert.equal(new Set([...others, proofDigest(proof(`0x${R_S}1b`))]).size, 7);
  });
});

describe('a payment to a payee that others may use', () => {
  const world = worldOfEachTest();
  const { settleOnce, settleAfter, record, state, receipts, countOf } = world;
  const OTHERS = { ...PAID, by: 'others' } as const;
  const UNKNOWN = { ...PAID, by: 'unknown' } as const;

  it('of another store is answered 409, and makes no receipt and no refund', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => OTHERS;
    for (let time = 0; time < 2; time += 1) assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
    assert.deepEqual(world.peer.names(), ['verify', 'settle'], 'its record answers the second one');
    assert.partialDeepStrictEqual(await record(), { state: 'refused', evidence: 'unclaimed' });
    assert.deepEqual([world.unclaimed, await receipts()], [[world.terms.payId], []]);
    assert.deepEqual([await countOf('payment.settled'), await countOf('payment.rejected')], [0, 1]);
  });

  it('of another store is found after a crash and behind the work of a backend', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    world.peer.script.reconcile = async () => OTHERS;
    await settleOnce();
    assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
    world.terms = { ...world.terms, payId: 'a'.repeat(64) };
    world.peer.script.settle = async () => OTHERS;
    assert.deepEqual(await settleAfter(), { kind: 'spent', state: 'used' });
    assert.deepEqual(
      world.unpaid.map(({ payId, reason }) => [payId, reason]),
      [[world.terms.payId, 'invalid_exact_evm_nonce_already_used']],
    );
  });

  it('stays uncertain where an attempt of this store may have made it, until something shows that it did', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => UNKNOWN;
    world.peer.script.reconcile = async () => UNKNOWN;
    for (let time = 0; time < 3; time += 1) assert.equal((await settleOnce()).kind, 'uncertain');
    assert.deepEqual([await state(), (await record())?.transaction, await receipts()], ['settling', undefined, []]);
    world.peer.script.reconcile = async () => PAID;
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(world.unclaimed, []);
  });

  it('counts, by any account, where no other store or seller uses the payee', async () => {
    for (const paid of [OTHERS, UNKNOWN]) {
      world.terms = { ...world.terms, payId: paid === OTHERS ? 'a'.repeat(64) : 'b'.repeat(64) };
      world.peer.script.settle = async () => paid;
      assert.equal((await settleOnce()).kind, 'paid');
    }
  });
});
