import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  Evidence,
  PaymentFacts,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
  Reserve,
} from '../../../src/payments/ledger/ledger.ts';
import {
  advance,
  assertRecord,
  discard,
  expiresAt,
  FORGOTTEN_IN,
  isFinal,
  LedgerCorruption,
  MAX_LEASE_MS,
  MAX_PAUSE_MS,
  note,
  RECORD_RETENTION_MS,
  renew,
  reserve,
  TRANSITIONS,
} from '../../../src/payments/ledger/table.ts';
import { unpaidWork } from '../../../src/payments/settlement/places.ts';
import { ask, holder, inState, LEASE_MS, move, NOW, sha256, TRANSACTION, terms } from './samples.ts';

const STATES = Object.keys(TRANSITIONS) as PaymentState[];
const LAWFUL = STATES.flatMap((from) => TRANSITIONS[from].map((to) => `${from} -> ${to}`));

describe('the table of payment states', () => {
  it('is the one of the contract', () => {
    assert.deepEqual(LAWFUL, [
      'reserved -> worked',
      'reserved -> settling',
      'worked -> settling',
      'worked -> refused',
      'settling -> settled',
      'settling -> refused',
      'settling -> withdrawn',
      'settling -> unresolved',
      'unresolved -> settled',
      'unresolved -> refused',
      'withdrawn -> settling',
      'settled -> delivered',
      'settled -> undelivered',
      'undelivered -> delivered',
      'undelivered -> undelivered',
      'undelivered -> refundDue',
      'refundDue -> refunding',
      'refundDue -> refunded',
      'refunding -> refunding',
      'refunding -> refunded',
    ]);
  });

  for (const from of STATES)
    for (const to of STATES)
      it(`${from} -> ${to} is ${LAWFUL.includes(`${from} -> ${to}`) ? 'done' : 'illegal and changes nothing'}`, () => {
        const record = inState(from);
        const { answer, record: after, changed } = advance(record, move(record, to), NOW);
        if (LAWFUL.includes(`${from} -> ${to}`)) {
          assert.deepEqual([answer.kind, after?.state, changed], ['done', to, true]);
        } else {
          assert.deepEqual(answer, { kind: 'illegal', state: from });
          assert.deepEqual([after === record, changed], [true, false]);
        }
      });

  for (const state of ['delivered', 'refused', 'refundDue', 'refunding', 'refunded'] as const)
    it(`${state} has forgotten proof and request, which nothing reads any more`, () => {
      assert.deepEqual(Object.keys(FORGOTTEN_IN[state] ?? {}), ['proof', 'backendRequest', 'rawTransaction']);
    });

  it('a change to settled takes its time from the store', () => {
    const record = inState('settling');
    assert.equal(advance(record, move(record, 'settled'), NOW).record?.settledAt, NOW);
  });

  for (const [from, to] of [
    ['settling', 'refused'],
    ['settled', 'delivered'],
    ['undelivered', 'refundDue'],
    ['refundDue', 'refunding'],
    ['refunding', 'refunded'],
  ] as const)
    it(`${to} gives the lease up and is never due again, whatever was asked for`, () => {
      const record = inState(from);
      const { record: after } = advance(record, { ...move(record, to), leaseMs: 1_000, againMs: 1_000 }, NOW);
      assert.partialDeepStrictEqual(after, { leaseUntil: 0, dueAt: 0 });
    });
});

describe('reserving an authorization', () => {
  it('the first caller is granted it, under fence 1', () => {
    const { answer, record } = reserve(undefined, ask('buyer'), NOW);
    assert.equal(answer.kind, 'granted');
    assert.partialDeepStrictEqual(record, { state: 'reserved', fence: 1, leaseUntil: NOW + LEASE_MS });
  });

  it('a verified proof begins as settling, until too little of its window is left', () => {
    const verified = { untilMs: NOW + 1, events: [] };
    const asked = { ...ask('buyer'), verified };
    assert.equal(reserve(undefined, asked, NOW).record?.state, 'settling');
    assert.equal(reserve(undefined, asked, NOW + 1).record?.state, 'reserved');
    const left = inState('reserved', { leaseUntil: 0 });
    assert.equal(reserve(left, asked, NOW).record?.state, 'reserved', 'a take-over changes no state');
  });

  it('terms are fixed then: a later caller finds the first request and the first receipt', () => {
    const record = inState('undelivered', { leaseUntil: 0 });
    const later = ask('other', { requestId: 'req_later' });
    const { answer } = reserve(record, later, NOW);
    const { requestId, receiptId } = record;
    assert.partialDeepStrictEqual(answer, { kind: 'granted', record: { requestId, receiptId } });
  });

  it('terms carry nothing but terms', () => {
    const wide = { ...terms('one'), transaction: TRANSACTION, state: 'settled' };
    const { record } = reserve(undefined, { terms: wide, owner: 'buyer', leaseMs: 1 }, NOW);
    assert.deepEqual([record?.state, record?.transaction], ['reserved', undefined]);
  });

  for (const state of STATES) {
    it(`${state}: an authorization that bought something else is used`, () => {
      const { answer, changed } = reserve(inState(state), ask('other', { bind: sha256('something else') }), NOW);
      assert.deepEqual([answer.kind, changed], ['conflict', false]);
    });
    const open = !isFinal(state);
    it(`${state}: another owner learns ${open ? 'how long the lease still lasts' : 'that it ended'}`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + 1);
      if (open) assert.partialDeepStrictEqual(answer, { kind: 'in_flight', leaseLeftMs: LEASE_MS - 1 });
      else assert.equal(answer.kind, 'completed');
    });
    if (!open) continue;
    it(`${state}: the same owner is granted it again and nothing changes`, () => {
      const record = inState(state);
      assert.deepEqual(reserve(record, ask('buyer'), NOW), {
        answer: { kind: 'granted', record },
        record,
        changed: false,
      });
    });
    it(`${state}: whose lease ended is taken over in that state, under the next fence`, () => {
      const { answer } = reserve(inState(state), ask('other'), NOW + LEASE_MS);
      assert.partialDeepStrictEqual(answer, { kind: 'granted', record: { state, owner: 'other', fence: 2 } });
    });
    it(`${state}: a lease that ran out counts as a failed delivery only after settlement; one given up never does`, () => {
      const paid = state === 'settled' || state === 'undelivered';
      assert.equal(reserve(inState(state), ask('other'), NOW + LEASE_MS).record?.tries, paid ? 1 : 0);
      assert.equal(reserve(inState(state, { leaseUntil: 0 }), ask('other'), NOW).record?.tries, 0);
    });
  }

  for (const [what, changes] of Object.entries({
    'a key digest that is the key itself': { keyDigest: 'key' },
    'a pay id that is no digest': { payId: 'ABC' },
    'a bind that is no digest': { bind: '' },
    'a receipt id without time': { receiptId: 'receipt_1' },
    'an amount with a point in base units': { units: '0.01' },
    'a validity of 0': { validBefore: 0 },
    'no payee': { payee: '' },
  }))
    it(`terms with ${what} are refused before anything is written`, () => {
      assert.throws(() => reserve(undefined, ask('buyer', changes), NOW), LedgerCorruption);
    });

  for (const leaseMs of [-1, 0.5, MAX_LEASE_MS + 1])
    it(`a lease of ${leaseMs} ms is a bug of the caller`, () => {
      assert.throws(() => reserve(undefined, { ...ask('buyer'), leaseMs }, NOW), RangeError);
    });
});

describe('writing under a token', () => {
  const commands = {
    advance: (record: PaymentRecord | undefined, held = inState('reserved')) =>
      advance(record, { ...move(held, 'settling'), step: 'now' }, NOW),
    note: (record: PaymentRecord | undefined, held = inState('reserved')) =>
      note(record, { ...holder(held, 'now'), facts: { reason: 'slow' }, leaseMs: 1 }, NOW),
  };

  for (const [name, command] of Object.entries(commands)) {
    it(`${name}: a record that is gone is lost`, () => {
      assert.deepEqual(command(undefined).answer, { kind: 'lost' });
    });
    it(`${name}: another owner or an older fence is fenced off, also for a step that was applied`, () => {
      const { record } = command(inState('reserved'));
      if (record === undefined) assert.fail();
      for (const other of [{ owner: 'other', fence: 2 }, { fence: 2 }, { owner: 'other' }])
        assert.deepEqual(command({ ...record, ...other }).answer, { kind: 'fenced' });
    });
  }

  for (const state of STATES) {
    it(`${state}: ${state === 'reserved' ? 'may be discarded' : 'must not be discarded'}`, () => {
      const record = inState(state);
      const { answer } = discard(record, holder(record));
      assert.deepEqual(answer, state === 'reserved' ? { kind: 'gone' } : { kind: 'illegal', state });
    });
    const provable = !isFinal(state) && !['reserved', 'worked', 'withdrawn'].includes(state);
    it(`${state}: a transaction ${provable ? 'may' : 'must not'} be noted`, () => {
      const record = inState(state);
      for (const facts of [{ transaction: TRANSACTION }, { rawTransaction: '0x02f8' }]) {
        const { answer } = note(record, { ...holder(record), facts, leaseMs: 1 }, NOW);
        assert.equal(answer.kind, provable ? 'done' : 'illegal');
      }
    });
  }

  it('every failed delivery counts', () => {
    const settled = inState('settled');
    const first = advance(settled, move(settled, 'undelivered', { leaseMs: 0 }), NOW).record ?? assert.fail();
    const second = advance(first, move(first, 'undelivered', { leaseMs: 0 }), NOW).record;
    assert.deepEqual([first.tries, second?.tries], [1, 2]);
  });
});

describe('evidence', () => {
  const PAID: readonly Evidence[] = ['logs', 'claim'];
  const WORTHLESS: readonly Evidence[] = ['expired', 'elsewhere', 'unsent', 'unclaimed'];
  const everything = { transaction: TRANSACTION, reason: 'because' };
  const settling = (facts: PaymentFacts, to: PaymentState = 'settled') => {
    const record = inState('settling', { transaction: TRANSACTION });
    return () => advance(record, move(record, to, { facts }), NOW);
  };

  for (const evidence of [...PAID, ...WORTHLESS]) {
    const paid = PAID.includes(evidence);
    it(`${evidence} makes a payment ${paid ? 'settled, never refused' : 'refused, never settled'}`, () => {
      const [lawful, unlawful] = paid ? (['settled', 'refused'] as const) : (['refused', 'settled'] as const);
      assert.equal(settling({ ...everything, evidence }, lawful)().answer.kind, 'done');
      assert.throws(settling({ ...everything, evidence }, unlawful), LedgerCorruption);
    });
    it(`${evidence} comes with no other change, and with no note`, () => {
      const record = inState('settled');
      for (const to of ['delivered', 'undelivered'] as const)
        assert.throws(() => advance(record, move(record, to, { facts: { evidence } }), NOW), LedgerCorruption);
      assert.throws(() => note(record, { ...holder(record), facts: { evidence }, leaseMs: 0 }, NOW), LedgerCorruption);
    });
    it(`${evidence} of a record that was read belongs to its state`, () => {
      for (const state of STATES) {
        const allowed =
          state === 'refused'
            ? !paid
            : paid && !['reserved', 'worked', 'settling', 'withdrawn', 'unresolved'].includes(state);
        const record = { ...inState(state), evidence };
        if (allowed) assert.equal(assertRecord(record), record);
        else assert.throws(() => assertRecord(record), LedgerCorruption);
      }
    });
  }

  it('the decision of an operator makes a payment settled or refused, out of the state that waits for it', () => {
    for (const to of ['settled', 'refused'] as const) {
      const record = inState('unresolved');
      const facts = { evidence: 'operator', reason: 'settlement_undecided' } as const;
      const { answer } = advance(record, move(record, to, { facts }), NOW);
      assert.partialDeepStrictEqual(answer, { kind: 'done', record: { state: to, evidence: 'operator' } });
      assert.throws(() => note(record, { ...holder(record), facts, leaseMs: 0 }, NOW), LedgerCorruption);
    }
  });
  it('what waits for an operator keeps what it bought, and not the bytes that could be sent', () => {
    const record = inState('settling', { transaction: TRANSACTION, rawTransaction: '0x02f8' });
    const { record: after } = advance(record, move(record, 'unresolved'), NOW);
    const { state, proof, backendRequest, rawTransaction, dueAt } = after ?? {};
    assert.deepEqual(
      [state, proof, backendRequest, rawTransaction, dueAt],
      ['unresolved', record.proof, record.backendRequest, '0x', 0],
    );
  });
  it('no final state is accepted without it', () => {
    assert.throws(settling(everything), LedgerCorruption);
    assert.throws(settling(everything, 'refused'), LedgerCorruption);
  });
  it('settled names its transaction with the change, also when one was written ahead', () => {
    assert.throws(settling({ evidence: 'logs' }), LedgerCorruption);
    assert.throws(settling({ evidence: 'claim' }), LedgerCorruption);
  });
  it('the decision of an operator needs no transaction', () => {
    const record = inState('settling');
    const { answer } = advance(record, move(record, 'settled', { facts: { evidence: 'operator' } }), NOW);
    assert.partialDeepStrictEqual(answer, { kind: 'done', record: { evidence: 'operator', settledAt: NOW } });
  });
  it('refused names its reason with the change', () => {
    assert.throws(settling({ evidence: 'expired' }, 'refused'), LedgerCorruption);
  });
  it('withdrawn names its reason with the change, keeps the hash and forgets the bytes that could be sent', () => {
    const record = inState('settling', { transaction: TRANSACTION, rawTransaction: '0x02f8' });
    assert.throws(() => advance(record, move(record, 'withdrawn', { facts: {} }), NOW), LedgerCorruption);
    const { record: after } = advance(record, move(record, 'withdrawn'), NOW);
    assert.partialDeepStrictEqual(after, { state: 'withdrawn', transaction: TRANSACTION, rawTransaction: '0x' });
    assert.equal(after?.proof, record.proof);
  });
});

describe('a record that was reserved with a secret', () => {
  const [key, token, other] = [sha256('key'), sha256('token'), sha256('other')];
  const issued = { kind: 'issued', id: sha256('token id'), forMs: 1_000 } as const;
  const madeFrom = (command: Reserve, shownFor?: string) => reserve(undefined, command, NOW, shownFor).record;
  const asked = (tokenDigest?: string, more: Partial<PaymentTerms> = {}) =>
    ask('other', { ...(tokenDigest === undefined ? {} : { tokenDigest }), ...more });
  type Secrets = Pick<PaymentTerms, 'keyDigest' | 'tokenDigest'>;
  /** What the record has, what a later call brings, and whether that opens it. */
  const rows: readonly (readonly [what: string, Secrets, Secrets, 'granted' | 'guarded'])[] = [
    ['its key', { keyDigest: key }, { keyDigest: key }, 'granted'],
    ['another key', { keyDigest: key }, { keyDigest: other }, 'guarded'],
    ['nothing, where there is a key', { keyDigest: key }, {}, 'guarded'],
    ['its token', { tokenDigest: token }, { tokenDigest: token }, 'granted'],
    ['its token beside a key', { tokenDigest: token }, { tokenDigest: token, keyDigest: key }, 'granted'],
    ['another token', { tokenDigest: token }, { tokenDigest: other }, 'guarded'],
    ['its token as a key', { tokenDigest: token }, { keyDigest: token }, 'guarded'],
    ['nothing, where there is a token', { tokenDigest: token }, {}, 'guarded'],
    ['a key, where there is no secret', {}, { keyDigest: key }, 'granted'],
    ['a token, where there is no secret', {}, { tokenDigest: token }, 'granted'],
  ];
  for (const [what, first, now, kind] of rows)
    it(`${kind} to a call with ${what}, however old the token is, and in each state; it gets no other secret`, () => {
      for (const state of STATES.filter((one) => !isFinal(one)))
        for (const shown of [{}, { token: issued }, { token: { kind: 'worthless' } as const }]) {
          const record = inState(state, { ...first, leaseUntil: 0 });
          const { answer, record: after, changed } = reserve(record, { ...ask('other', now), ...shown }, NOW);
          assert.deepEqual([answer.kind, changed], [kind, kind === 'granted'], state);
          if (kind === 'guarded') assert.equal(after, record);
          assert.deepEqual([after?.keyDigest, after?.tokenDigest], [first.keyDigest, first.tokenDigest]);
        }
    });
  it('another purchase and a final state are answered before it', () => {
    const otherBind = ask('other', { bind: sha256('something else') });
    assert.equal(
      reserve(inState('settled', { keyDigest: key, leaseUntil: 0 }), otherBind, NOW).answer.kind,
      'conflict',
    );
    assert.equal(reserve(inState('delivered', { keyDigest: key }), asked(), NOW).answer.kind, 'completed');
  });
  it('a key is kept with the first reservation', () => {
    assert.equal(madeFrom(asked(undefined, { keyDigest: key }))?.keyDigest, key);
  });
  it('a token is the secret where it is ours, or in terms that were a record', () => {
    assert.equal(madeFrom({ ...asked(token), token: issued })?.tokenDigest, token);
    assert.equal(madeFrom(asked(token))?.tokenDigest, token);
  });
  it('a token is no secret where it is worthless, or where another payment showed it first', () => {
    assert.equal(madeFrom({ ...asked(token), token: { kind: 'worthless' } })?.tokenDigest, undefined);
    assert.equal(madeFrom({ ...asked(token), token: issued }, sha256('other payment'))?.tokenDigest, undefined);
    assert.equal(madeFrom({ ...asked(token), token: issued }, asked().terms.payId)?.tokenDigest, token);
  });
  it('a token is no secret beside a key, which alone counts', () => {
    const made = madeFrom({ ...asked(token, { keyDigest: sha256('key') }), token: issued });
    assert.deepEqual([made?.keyDigest, made?.tokenDigest], [sha256('key'), undefined]);
  });
  it('a token is taken as its digest alone', () => {
    assert.throws(() => reserve(undefined, asked('A'.repeat(72)), NOW), LedgerCorruption);
  });
});

describe('renewing a lease', () => {
  const LATER = NOW + 5_000;
  const renewed = (record: PaymentRecord, claim: Partial<PaymentRecord> = {}, now = LATER) =>
    renew(record, { ...holder({ ...record, ...claim }), leaseMs: LEASE_MS }, now);

  for (const state of STATES.filter((one) => !isFinal(one))) {
    it(`${state}: it lasts from now, and nothing else changes, not even the step`, () => {
      const record = inState(state);
      const { answer, record: after, changed } = renewed(record);
      assert.equal(answer, true);
      assert.equal(changed, true);
      assert.deepEqual(after, { ...record, leaseUntil: LATER + LEASE_MS, dueAt: LATER + LEASE_MS });
    });
    const unchanged = (record: PaymentRecord, claim?: Partial<PaymentRecord>, now?: number) =>
      assert.deepEqual(renewed(record, claim, now), { answer: false, record, changed: false });
    it(`${state}: not when it is over, given up, or another's`, () => {
      unchanged(inState(state), {}, NOW + LEASE_MS);
      unchanged(inState(state, { leaseUntil: 0 }));
      unchanged(inState(state), { owner: 'other' });
      unchanged(inState(state), { fence: 2 });
    });
  }
  for (const state of STATES.filter((one) => isFinal(one)))
    it(`${state}: never`, () => {
      // Even a damaged record whose lease seems to run.
      const record = inState(state, { leaseUntil: NOW + LEASE_MS });
      assert.deepEqual(renewed(record), { answer: false, record, changed: false });
    });
  it('not when the record is gone', () => {
    const claim = { ...holder(inState('settled')), leaseMs: LEASE_MS };
    assert.deepEqual(renew(undefined, claim, NOW), { answer: false, record: undefined, changed: false });
  });
});

describe('when a reconciler should look', () => {
  const settling = inState('settling');
  const noted = (leaseMs: number, againMs?: number) =>
    note(settling, { ...holder(settling), leaseMs, ...(againMs === undefined ? {} : { againMs }) }, NOW).record;

  it('at the end of the lease, and after the pause that was asked for', () => {
    assert.equal(reserve(undefined, ask('buyer'), NOW).record?.dueAt, NOW + LEASE_MS);
    assert.equal(noted(1_000)?.dueAt, NOW + 1_000);
    assert.equal(noted(1_000, 500)?.dueAt, NOW + 1_500);
  });
  it('at once when the lease is given up, unless a pause was asked for', () => {
    assert.partialDeepStrictEqual(noted(0), { leaseUntil: 0, dueAt: NOW });
    assert.partialDeepStrictEqual(noted(0, 500), { leaseUntil: 0, dueAt: NOW + 500 });
  });
  it('a change of state sets it the same way', () => {
    const { record } = advance(settling, { ...move(settling, 'settled'), leaseMs: 0, againMs: 7 }, NOW);
    assert.partialDeepStrictEqual(record, { leaseUntil: 0, dueAt: NOW + 7 });
  });
  for (const againMs of [-1, 0.5, MAX_PAUSE_MS + 1])
    it(`a pause of ${againMs} ms is a bug of the caller`, () => {
      assert.throws(() => noted(0, againMs), RangeError);
      assert.throws(() => advance(settling, { ...move(settling, 'settled'), againMs }, NOW), RangeError);
    });
});

describe('how long a record is kept', () => {
  it('25 hours after the end of its validity or its last change, whichever is later', () => {
    const { validBefore } = terms('one', { validBefore: NOW / 1_000 + 120 });
    const early = inState('reserved', { validBefore });
    assert.equal(expiresAt(early), NOW + 120_000 + RECORD_RETENTION_MS);
    assert.equal(expiresAt({ ...early, changedAt: NOW + 500_000 }), NOW + 500_000 + RECORD_RETENTION_MS);
    assert.equal(RECORD_RETENTION_MS, 90_000_000);
  });
});

describe('work that was not paid for', () => {
  it('is shown with its call, its price and why it came to nothing, and without what its buyer sent', () => {
    const record = inState('refused', { answered: 201, callId: 'call_1' });
    assert.deepEqual(unpaidWork(record), {
      at: new Date(record.changedAt).toISOString(),
      requestId: record.requestId,
      callId: 'call_1',
      resourceId: 'market_report',
      channel: 'http',
      amount: '0.01',
      currency: 'USDC',
      network: 'eip155:84532',
      payer: record.payer,
      replayKey: record.payId,
      backendStatus: 201,
      reason: 'insufficient_funds',
    });
  });
});
