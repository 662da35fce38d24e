import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { createLeases, LEASE_MS } from '../../../src/payments/settlement/attempt.ts';
import { JOIN_MS, joining, MOST_COPIES, type Settler } from '../../../src/payments/settlement/settle.ts';
import type { Paid, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { rest, virtualTime } from './virtual-time.ts';
import { freshTerms, PAID, worldOfEachTest } from './world.ts';

/** Both clocks go in steps of this many milliseconds. */
const STEP_MS = 100;

describe('copies of a proof', () => {
  const world = worldOfEachTest();
  const { requestWith, pay, broken, silent } = world;
  let time: ReturnType<typeof virtualTime>;
  let reads = 0;

  const joined = (through: PaymentLedger = world.ledger): Settler => {
    const ledger = broken({
      read: (payId) => {
        reads += 1;
        return through.read(payId);
      },
    });
    return joining(world.settler(through), ledger, time);
  };
  /** The store's clock goes with the virtual one. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= STEP_MS) {
      world.clock += Math.min(left, STEP_MS);
      await time.pass(Math.min(left, STEP_MS));
    }
  };
  /** Its process renews the lease. */
  const living = ({ record }: Paid) => createLeases(world.ledger, time).hold(record, 60_000);
  const kinds = (results: readonly SettlementResult[]): readonly string[] => [
    ...new Set(results.map(({ kind }) => kind)),
  ];

  beforeEach(() => {
    time = virtualTime();
    reads = 0;
    // Copies of one buyer: a call that cannot show the secret waits for nothing.
    world.terms = { ...world.terms, tokenDigest: 'b'.repeat(64) };
  });

  it('in one process share one read of the record and get the answer of the first', async () => {
    const first = await pay();
    const settler = joined();
    const copies = Array.from({ length: MOST_COPIES }, () => settler.settle(requestWith()));
    await pass(1_000);
    assert.ok(reads > 0 && reads < 12, `${reads} looks`);
    const waiting = time.sleepers();
    assert.equal(waiting, MOST_COPIES + 1, 'each copy has its bound, and one looks');
    await world.deliver(first, { answer: keptAnswer() });
    await pass(200);
    const results = await Promise.all(copies);
    assert.deepEqual(kinds(results), ['replayed']);
    assert.ok(results.every((result) => result.kind === 'replayed' && result.joined));
    assert.deepEqual(world.peer.names(), ['verify', 'settle']);
  });

  it('beyond the eighth are answered in flight at once, without a question to the store; another proof is not delayed', async () => {
    const first = await pay();
    let asked = 0;
    const reserve: PaymentLedger['reserve'] = (command) => {
      asked += 1;
      return world.ledger.reserve(command);
    };
    const settler = joined(broken({ reserve }));
    const waiting = Array.from({ length: MOST_COPIES }, () => settler.settle(requestWith()));
    await pass(10);
    const refused = await Promise.all(Array.from({ length: 700 }, () => settler.settle(requestWith())));
    assert.deepEqual(kinds(refused), ['in_flight']);
    assert.ok(asked > 0 && asked <= MOST_COPIES);
    const { terms } = world;
    world.terms = freshTerms();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
    await world.deliver(first, { answer: keptAnswer() });
    await pass(200);
    assert.deepEqual(kinds(await Promise.all(waiting)), ['replayed']);
    assert.equal((await settler.settle(requestWith({ terms }))).kind, 'replayed', 'and there is room again');
  });

  it('look soon at first: an answer that takes 20 ms is not waited for longer', async () => {
    const first = await pay();
    const copy = joined().settle(requestWith());
    await rest();
    await world.deliver(first, { answer: keptAnswer() });
    await pass(20);
    assert.equal((await copy).kind, 'replayed');
  });

  it('get the failure of the first one, and do not try it again', async () => {
    const first = await pay();
    const settler = joined();
    const copies = Array.from({ length: 5 }, () => settler.settle(requestWith()));
    await pass(100);
    await world.failDelivery(first, { backendStatus: 500 });
    await pass(2_000);
    assert.deepEqual(new Set((await Promise.all(copies)).map(({ kind }) => kind)), new Set(['failed']));
  });

  it('go on where the first left it uncertain', async () => {
    world.peer.script.settle = async () => {
      world.peer.script.reconcile = async () => PAID;
      await time.sleep(500);
      return { kind: 'uncertain', cause: 'cut' };
    };
    const first = world.settler().settle(requestWith());
    await rest();
    const copy = joined().settle(requestWith());
    await pass(500);
    assert.equal((await first).kind, 'uncertain');
    await pass(200);
    assert.equal((await copy).kind, 'paid');
  });

  it('go on as soon as the lease of a call that died is over', async () => {
    await pay();
    const copy = joined().settle(requestWith());
    await pass(LEASE_MS - 1);
    assert.equal(time.sleepers(), 2, 'it waits, and one looks');
    await pass(20);
    assert.equal((await copy).kind, 'paid');
  });

  it('are in flight after three seconds, and not a millisecond before', async () => {
    const alive = living(await pay());
    const settler = joined();
    const answered: SettlementResult[] = [];
    const copies = Array.from({ length: 3 }, async () => void answered.push(await settler.settle(requestWith())));
    await pass(JOIN_MS - 1);
    assert.deepEqual(answered, []);
    await pass(1);
    await Promise.all(copies);
    assert.deepEqual(kinds(answered), ['in_flight']);
    alive.drop();
    await pass(JOIN_MS);
    assert.equal(time.sleepers(), 0, 'and nothing looks any more');
  });

  it('wait on while the store is silent, and have the answer when it is back', async () => {
    const first = await pay();
    let away = true;
    const ledger = broken({ read: (payId) => (away ? silent() : world.ledger.read(payId)) });
    const copy = joined(ledger).settle(requestWith());
    await pass(500);
    away = false;
    await world.deliver(first, { answer: keptAnswer() });
    await pass(500);
    assert.equal((await copy).kind, 'replayed');
  });

  it('have the error of a store that stays silent', async () => {
    await pay();
    let away = false;
    const reserve: PaymentLedger['reserve'] = (command) => (away ? silent() : world.ledger.reserve(command));
    const copy = joined(broken({ read: silent, reserve })).settle(requestWith());
    const failed = assert.rejects(copy, StoreError);
    await pass(100);
    away = true;
    await pass(JOIN_MS);
    await failed;
  });

  it('that lack the secret do not wait for an answer that is not theirs', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await world.settleOnce();
    let takes = 0;
    const reserve: PaymentLedger['reserve'] = (command) => {
      takes += 1;
      return world.ledger.reserve(command);
    };
    const { tokenDigest: _token, ...bare } = world.terms;
    const copy = joined(broken({ reserve })).settle(requestWith({ terms: bare }));
    await pass(JOIN_MS);
    assert.equal((await copy).kind, 'in_flight');
    assert.equal(takes, 1);
  });

  it('that came without a secret do not wait for a call that has none either: the answer could be an onlooker’s', async () => {
    const { tokenDigest: _token, ...bare } = world.terms;
    await pay({ terms: bare });
    const result = await joined().settle(requestWith({ terms: bare }));
    assert.deepEqual(result, { kind: 'in_flight', alone: true });
    assert.equal(time.sleepers(), 0);
  });

  it('any other answer is given at once', async () => {
    world.gateOpen = false;
    assert.equal((await joined().settle(requestWith())).kind, 'gate_closed');
    assert.equal(time.sleepers(), 0);
  });
});
