import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { worldOfEachTest } from './world.ts';

describe('the gate', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, broken } = world;

  it('closed: nothing is even reserved', async () => {
    world.gateOpen = false;
    assert.equal((await settleOnce()).kind, 'gate_closed');
    assert.deepEqual([await record(), world.peer.names()], [undefined, []]);
  });

  it('that closes while the rail verifies: nothing is sent, and the proof works at once on the next process', async () => {
    world.peer.script.verify = async () => {
      world.gateOpen = false;
      return { kind: 'valid' };
    };
    assert.equal((await settleOnce()).kind, 'gate_closed');
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.equal(await world.state(), undefined, 'no other process may go on with it');
    world.gateOpen = true;
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('that closes when the settlement was begun: another process may go on, so the outcome is open', async () => {
    const reserve: PaymentLedger['reserve'] = async (command) => {
      const answer = await world.ledger.reserve(command);
      world.gateOpen = false;
      return answer;
    };
    assert.equal((await settleOnce({}, broken({ reserve }))).kind, 'uncertain');
    assert.deepEqual(world.peer.names(), ['verify']);
  });
});

describe('a payment that was not delivered', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, recorder, facts, later, record, receipts, broken, silent } = world;

  const fail = async (requestWritten: boolean): Promise<void> => {
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 0, requestWritten, repeatable: false });
  };

  it('is collected when the backend may be asked twice', async () => {
    await fail(true);
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(world.peer.names(), ['verify', 'settle']);
  });

  it('is not sent twice when the backend may not be asked twice', async () => {
    await fail(true);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
    assert.equal((await record())?.leaseUntil, 0);
  });

  it('is sent once when it certainly never reached the backend: after a crash it is not sent again', async () => {
    await fail(false);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'paid');
    later(8_000);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
  });

  it('whose buyer left gets the answer that was kept, without another call to the backend, whatever the method', async () => {
    const result = await pay();
    const answer = keptAnswer();
    const left = { failure: { code: 'client_gone' }, requestWritten: true, repeatable: false } as const;
    await recorder().undelivered(result.record, { ...facts(result, { answer }), ...left });
    const again = await settleOnce({ repeatable: false });
    assert.ok(again.kind === 'paid');
    assert.deepEqual({ ...again.kept, body: [...(again.kept?.body ?? [])] }, { ...answer, body: [...answer.body] });
    later(8_000);
    const afterCrash = await settleOnce({ repeatable: false });
    assert.ok(afterCrash.kind === 'paid' && afterCrash.kept !== undefined, 'and is not lost after a crash');
  });

  it('and whose attempt died before it recorded that: a method that may not be repeated waits as undelivered', async () => {
    await pay();
    later(8_000);
    const result = await settleOnce({ repeatable: false });
    assert.ok(result.kind === 'spent' && result.state === 'undelivered');
    const { state, dueAt = 0, settledAt = 0, leaseUntil } = (await record()) ?? {};
    assert.deepEqual([state, dueAt - settledAt, leaseUntil], ['undelivered', 24 * 60 * 60 * 1_000, 0]);
    assert.deepEqual(
      (await receipts()).map(({ delivered, metadata }) => [delivered, metadata]),
      [[false, { callId: world.terms.callId, backendErrorCode: 'interrupted' }]],
    );
  });

  it('a key that comes with a later call locks no buyer out: an onlooker may have brought it', async () => {
    await fail(true);
    assert.equal((await settleOnce({ terms: { ...world.terms, keyDigest: sha256('a key') } })).kind, 'paid');
    assert.equal((await record())?.keyDigest, undefined);
    later(8_000);
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('a copy that only waited for it does not try again: the backend must not get all copies', async () => {
    await fail(true);
    const copy = await world.settler().settle(world.requestWith(), true);
    assert.ok(copy.kind === 'failed' && copy.retryable);
    assert.equal((await settleOnce()).kind, 'paid', 'a later call collects');
  });

  it('written, but every reply lost: the request has not left, so the same proof collects whatever the method', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await world.ledger.advance(command);
      return command.to === 'settled' ? silent() : answer;
    };
    assert.equal((await settleOnce({ repeatable: false }, broken({ advance }))).kind, 'uncertain');
    assert.equal((await record())?.state, 'settled');
    const note: PaymentLedger['note'] = async (command) => {
      await world.ledger.note(command);
      return silent();
    };
    await assert.rejects(settleOnce({ repeatable: false }, broken({ note })), StoreError);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'paid');
    later(8_000);
    assert.equal((await settleOnce({ repeatable: false })).kind, 'spent', 'now it may have left');
  });
});
