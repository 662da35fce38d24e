import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { tillOfEachTest } from './till.ts';

describe('the gate', () => {
  const till = tillOfEachTest();
  const { take, record, broken } = till;

  it('closed: nothing is even reserved', async () => {
    till.gateOpen = false;
    assert.equal((await take()).kind, 'gate_closed');
    assert.deepEqual([await record(), till.peer.names()], [undefined, []]);
  });

  it('that closes while the rail verifies: nothing is sent, and the proof works at once on the next pod', async () => {
    till.peer.script.verify = async () => {
      till.gateOpen = false;
      return { kind: 'valid' };
    };
    assert.equal((await take()).kind, 'gate_closed');
    assert.deepEqual(till.peer.names(), ['verify']);
    assert.equal(await till.state(), undefined, 'no other process may go on with it');
    till.gateOpen = true;
    till.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await take()).kind, 'paid');
  });

  it('that closes when the settlement was begun: another process may go on, so the outcome is open', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await till.ledger.advance(command);
      till.gateOpen = false;
      return answer;
    };
    assert.equal((await take({}, broken({ advance }))).kind, 'uncertain');
    assert.deepEqual(till.peer.names(), ['verify']);
  });
});

describe('a payment that was not delivered', () => {
  const till = tillOfEachTest();
  const { take, pay, desk, facts, later, record, receipts, broken, silent } = till;

  const fail = async (requestWritten: boolean): Promise<void> => {
    const sale = await pay();
    const failed = { failure: 'BACKEND_ERROR', requestWritten, repeatable: false } as const;
    await desk().undelivered(sale.record, { ...facts(sale, { backendStatus: 0 }), ...failed });
  };

  it('is collected when the merchant may be asked twice', async () => {
    await fail(true);
    assert.equal((await take()).kind, 'paid');
    assert.deepEqual(till.peer.names(), ['verify', 'settle']);
  });

  it('is not sent twice to a merchant who may not be', async () => {
    await fail(true);
    const sale = await take({ repeatable: false });
    assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
    assert.equal((await record())?.leaseUntil, 0);
  });

  it('is sent when it certainly never reached the merchant, once: a crash on the way must not let it out again', async () => {
    await fail(false);
    assert.equal((await take({ repeatable: false })).kind, 'paid');
    later(8_000);
    const sale = await take({ repeatable: false });
    assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
  });

  it('whose buyer left is handed the answer that was kept, without another call to the merchant, whatever the method', async () => {
    const sale = await pay();
    const answer = keptAnswer();
    const left = { failure: 'CLIENT_GONE', requestWritten: true, repeatable: false } as const;
    await desk().undelivered(sale.record, { ...facts(sale, { answer }), ...left });
    const again = await take({ repeatable: false });
    assert.ok(again.kind === 'paid');
    assert.deepEqual({ ...again.kept, body: [...(again.kept?.body ?? [])] }, { ...answer, body: [...answer.body] });
    later(8_000);
    const afterCrash = await take({ repeatable: false });
    assert.ok(afterCrash.kind === 'paid' && afterCrash.kept !== undefined, 'and is not lost on a second way');
  });

  it('and whose attempt died before it could say so: a method that may not be repeated waits as undelivered, for its merchant', async () => {
    await pay();
    later(8_000);
    const sale = await take({ repeatable: false });
    assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
    const { state, dueAt = 0, settledAt = 0, leaseUntil } = (await record()) ?? {};
    assert.deepEqual([state, dueAt - settledAt, leaseUntil], ['undelivered', 24 * 60 * 60 * 1_000, 0]);
    assert.deepEqual(
      (await receipts()).map(({ delivered, metadata }) => [delivered, metadata]),
      [[false, { backendErrorCode: 'BACKEND_ERROR' }]],
    );
  });

  it('a key that comes with a later call locks nobody out: an onlooker may have brought it', async () => {
    await fail(true);
    assert.equal((await take({ terms: { ...till.terms, keyDigest: sha256('a key') } })).kind, 'paid');
    assert.equal((await record())?.keyDigest, undefined);
    later(8_000);
    assert.equal((await take()).kind, 'paid');
  });

  it('a copy that only waited for it does not try again: the merchant must not bear a herd', async () => {
    await fail(true);
    const copy = await till.settler().settle(till.order(), true);
    assert.ok(copy.kind === 'failed' && copy.retryable);
    assert.equal((await take()).kind, 'paid', 'who comes by himself collects');
  });

  it('written, but every reply lost: the request has not left, so the same proof collects whatever the method', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await till.ledger.advance(command);
      return command.to === 'settled' ? silent() : answer;
    };
    assert.equal((await take({ repeatable: false }, broken({ advance }))).kind, 'uncertain');
    assert.equal((await record())?.state, 'settled');
    const note: PaymentLedger['note'] = async (command) => {
      await till.ledger.note(command);
      return silent();
    };
    await assert.rejects(take({ repeatable: false }, broken({ note })), StoreError);
    assert.equal((await take({ repeatable: false })).kind, 'paid');
    later(8_000);
    assert.equal((await take({ repeatable: false })).kind, 'spent', 'now it may have left');
  });
});
