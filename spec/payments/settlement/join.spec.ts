import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { JOIN_MS, joining, MOST_COPIES } from '../../../src/payments/settlement/join.ts';
import { createLeases, LEASE_MS } from '../../../src/payments/settlement/reservations.ts';
import type { Settler } from '../../../src/payments/settlement/settle.ts';
import type { Paid, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { PAID } from './scripted-rail.ts';
import { freshTerms, tillOfEachTest } from './till.ts';
import { rest, virtualTime } from './virtual-time.ts';

/** Both clocks go in steps of this many milliseconds. */
const STEP_MS = 100;

describe('copies of a proof', () => {
  const till = tillOfEachTest();
  const { order, pay, desk, facts, broken, silent } = till;
  let time: ReturnType<typeof virtualTime>;
  let reads = 0;

  const joined = (through: PaymentLedger = till.ledger): Settler => {
    const ledger = broken({
      read: (payId) => {
        reads += 1;
        return through.read(payId);
      },
    });
    return joining(till.settler(through), ledger, time);
  };
  /** The store's clock goes with the virtual one. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= STEP_MS) {
      till.clock += Math.min(left, STEP_MS);
      await time.pass(Math.min(left, STEP_MS));
    }
  };
  /** Its process says that it lives. */
  const living = ({ record }: Paid) => createLeases(till.ledger, time).hold(record, 60_000);
  const kinds = (sales: readonly SettlementResult[]): readonly string[] => [...new Set(sales.map(({ kind }) => kind))];

  beforeEach(() => {
    time = virtualTime();
    reads = 0;
    // Copies of one buyer: a call that cannot show the secret waits for nothing.
    till.terms = { ...till.terms, tokenDigest: 'b'.repeat(64) };
  });

  it('in one process share one look at the record and have the answer of the first', async () => {
    const first = await pay();
    const settler = joined();
    const copies = Array.from({ length: MOST_COPIES }, () => settler.settle(order()));
    await pass(1_000);
    assert.ok(reads > 0 && reads < 12, `${reads} looks`);
    const waiting = time.sleepers();
    assert.equal(waiting, MOST_COPIES + 1, 'each copy has its bound, and one looks');
    await desk().delivered(first.record, facts(first, { answer: keptAnswer() }));
    await pass(200);
    const sales = await Promise.all(copies);
    assert.deepEqual(kinds(sales), ['replayed']);
    assert.ok(sales.every((sale) => sale.kind === 'replayed' && sale.joined));
    assert.deepEqual(till.peer.names(), ['verify', 'settle']);
  });

  it('beyond the eighth hear at once that it is in flight, without a question to the store; another proof is not held up', async () => {
    const first = await pay();
    let asked = 0;
    const reserve: PaymentLedger['reserve'] = (command) => {
      asked += 1;
      return till.ledger.reserve(command);
    };
    const settler = joined(broken({ reserve }));
    const waiting = Array.from({ length: MOST_COPIES }, () => settler.settle(order()));
    await pass(10);
    const refused = await Promise.all(Array.from({ length: 700 }, () => settler.settle(order())));
    assert.deepEqual(kinds(refused), ['in_flight']);
    assert.equal(asked, MOST_COPIES);
    const { terms } = till;
    till.terms = freshTerms();
    assert.equal((await settler.settle(order())).kind, 'paid');
    await desk().delivered(first.record, facts(first, { answer: keptAnswer() }));
    await pass(200);
    assert.deepEqual(kinds(await Promise.all(waiting)), ['replayed']);
    assert.equal((await settler.settle(order({ terms }))).kind, 'replayed', 'and there is room again');
  });

  it('look soon at first: an answer that takes 20 ms is not waited for longer', async () => {
    const first = await pay();
    const copy = joined().settle(order());
    await rest();
    await desk().delivered(first.record, facts(first, { answer: keptAnswer() }));
    await pass(20);
    assert.equal((await copy).kind, 'replayed');
  });

  it('hear that the first one failed, and do not try it again behind its back', async () => {
    const first = await pay();
    const settler = joined();
    const copies = Array.from({ length: 5 }, () => settler.settle(order()));
    await pass(100);
    const failed = { failure: 'BACKEND_ERROR', requestWritten: true, repeatable: true } as const;
    await desk().undelivered(first.record, { ...facts(first, { backendStatus: 500 }), ...failed });
    await pass(2_000);
    assert.deepEqual(new Set((await Promise.all(copies)).map(({ kind }) => kind)), new Set(['failed']));
  });

  it('go on where the first left it uncertain', async () => {
    till.peer.script.settle = async () => {
      till.peer.script.reconcile = async () => PAID;
      await time.sleep(500);
      return { kind: 'uncertain', cause: 'cut' };
    };
    const first = till.settler().settle(order());
    await rest();
    const copy = joined().settle(order());
    await pass(500);
    assert.equal((await first).kind, 'uncertain');
    await pass(200);
    assert.equal((await copy).kind, 'paid');
  });

  it('go on as soon as the lease of a call that died is over', async () => {
    await pay();
    const copy = joined().settle(order());
    await pass(LEASE_MS - 1);
    assert.equal(time.sleepers(), 2, 'it waits, and one looks');
    await pass(20);
    assert.equal((await copy).kind, 'paid');
  });

  it('are in flight after three seconds, and not a millisecond before', async () => {
    const alive = living(await pay());
    const settler = joined();
    const answered: SettlementResult[] = [];
    const copies = Array.from({ length: 3 }, async () => void answered.push(await settler.settle(order())));
    await pass(JOIN_MS - 1);
    assert.deepEqual(answered, []);
    await pass(1);
    await Promise.all(copies);
    assert.deepEqual(kinds(answered), ['in_flight']);
    alive.drop();
    await pass(JOIN_MS);
    assert.equal(time.sleepers(), 0, 'and nobody looks any more');
  });

  it('wait on while the store is silent, and have the answer when it is back', async () => {
    const first = await pay();
    let away = true;
    const ledger = broken({ read: (payId) => (away ? silent() : till.ledger.read(payId)) });
    const copy = joined(ledger).settle(order());
    await pass(500);
    away = false;
    await desk().delivered(first.record, facts(first, { answer: keptAnswer() }));
    await pass(500);
    assert.equal((await copy).kind, 'replayed');
  });

  it('have the error of a store that stays silent', async () => {
    await pay();
    let away = false;
    const reserve: PaymentLedger['reserve'] = (command) => (away ? silent() : till.ledger.reserve(command));
    const copy = joined(broken({ read: silent, reserve })).settle(order());
    const failed = assert.rejects(copy, StoreError);
    await pass(100);
    away = true;
    await pass(JOIN_MS);
    await failed;
  });

  it('of another proof do not wait for this one', async () => {
    living(await pay());
    const settler = joined();
    const copy = settler.settle(order());
    await pass(100);
    till.terms = freshTerms();
    assert.equal((await settler.settle(order())).kind, 'paid');
    await pass(JOIN_MS);
    assert.equal((await copy).kind, 'in_flight');
  });

  it('that lack the secret do not wait for an answer that is not theirs', async () => {
    till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await till.take();
    let takes = 0;
    const reserve: PaymentLedger['reserve'] = (command) => {
      takes += 1;
      return till.ledger.reserve(command);
    };
    const { tokenDigest: _token, ...bare } = till.terms;
    const copy = joined(broken({ reserve })).settle(order({ terms: bare }));
    await pass(JOIN_MS);
    assert.equal((await copy).kind, 'in_flight');
    assert.equal(takes, 1);
  });

  it('that came without a secret do not wait for a call that has none either: the answer would be any onlooker’s', async () => {
    const { tokenDigest: _token, ...bare } = till.terms;
    await pay({ terms: bare });
    const sale = await joined().settle(order({ terms: bare }));
    assert.deepEqual(sale, { kind: 'in_flight', alone: true });
    assert.equal(time.sleepers(), 0);
  });

  it('any other answer is given at once', async () => {
    till.gateOpen = false;
    assert.equal((await joined().settle(order())).kind, 'gate_closed');
    assert.equal(time.sleepers(), 0);
  });
});
