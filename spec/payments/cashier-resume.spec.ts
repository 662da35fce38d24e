import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDeliveryDesk } from '../../src/payments/delivery.ts';
import type { PaymentLedger } from '../../src/payments/ledger/ledger.ts';
import type { Sale } from '../../src/payments/sale.ts';
import { StoreError } from '../../src/store/store.ts';
import { HASH, tillOfEachTest } from './till.ts';

describe('the cashier, later', () => {
  const till = tillOfEachTest();
  const { order, take, later, state, broken, silent } = till;

  describe('the gate', () => {
    it('closed: nothing is even reserved', async () => {
      till.gateOpen = false;
      assert.equal((await take()).kind, 'gate_closed');
      assert.deepEqual([await state(), till.peer.names()], [undefined, []]);
    });

    it('that closes while the rail verifies: nothing is sent, and the proof works on the next pod', async () => {
      till.peer.script.verify = async () => {
        till.gateOpen = false;
        return { kind: 'valid' };
      };
      assert.equal((await take()).kind, 'gate_closed');
      assert.deepEqual(till.peer.names(), ['verify']);
      till.gateOpen = true;
      till.peer.script.verify = async () => ({ kind: 'valid' });
      assert.equal((await take()).kind, 'paid');
    });
  });

  describe('leases', () => {
    it('hold while the rail verifies, settles and the merchant delivers; after that the next attempt takes over', async () => {
      const during = async (ms: number): Promise<Sale['kind']> => {
        later(ms);
        return (await take()).kind;
      };
      till.peer.script.verify = async () => {
        assert.equal(await during(9_500), 'in_flight');
        return { kind: 'valid' };
      };
      till.peer.script.settle = async () => {
        assert.equal(await during(60_000), 'in_flight');
        return { kind: 'settled', transaction: HASH };
      };
      assert.equal((await take()).kind, 'paid');
      assert.equal(await during(10_000 + 120_000), 'in_flight');
      assert.equal(await during(60_000), 'paid', 'a delivery that died is resumed');
    });
  });

  describe('a payment that was not delivered', () => {
    const fail = async (requestWritten: boolean): Promise<void> => {
      const sale = await take();
      assert.ok(sale.kind === 'paid');
      const desk = createDeliveryDesk(till.ledger, () => assert.fail('written'));
      const facts = { requestId: 'r', backendStatus: 0, durationMs: 1, journal: order().journal };
      await desk.undelivered(sale.record, { ...facts, failure: 'BACKEND_ERROR', requestWritten });
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
    });

    it('is sent when it certainly never reached the merchant, once: a crash on the way must not let it out again', async () => {
      await fail(false);
      assert.equal((await take({ repeatable: false })).kind, 'paid');
      later(300_000);
      const sale = await take({ repeatable: false });
      assert.ok(sale.kind === 'spent' && sale.state === 'undelivered');
    });
  });

  it('written, but every reply lost: the request has not left, so the same proof collects whatever the method', async () => {
    const advance: PaymentLedger['advance'] = async (command) => {
      const answer = await till.ledger.advance(command);
      return command.to === 'settled' ? silent() : answer;
    };
    assert.equal((await take({ repeatable: false }, broken({ advance }))).kind, 'uncertain');
    assert.equal(await state(), 'settled');
    const note: PaymentLedger['note'] = async (...command) => {
      await till.ledger.note(...command);
      return silent();
    };
    await assert.rejects(take({ repeatable: false }, broken({ note })), StoreError);
    assert.equal((await take({ repeatable: false })).kind, 'paid');
    later(300_000);
    assert.equal((await take({ repeatable: false })).kind, 'spent', 'now it may have left');
  });

  it('a proof that was let through for a record which is gone is refused after all', async () => {
    const refused = await take({ refusal: 'invalid_exact_evm_payload_authorization_valid_before' });
    assert.deepEqual(refused, {
      kind: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      phase: 'verify',
    });
    assert.deepEqual([await state(), till.peer.names()], [undefined, []]);
  });

  it('what is delivered is over, and the record forgets the proof and the request', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid');
    const desk = createDeliveryDesk(till.ledger, () => assert.fail('written'));
    const { journal } = order();
    await desk.delivered(sale.record, { requestId: till.terms.requestId, backendStatus: 200, durationMs: 1, journal });
    const record = await till.ledger.read(till.terms.payId);
    assert.deepEqual([record?.state, record?.proof, record?.backendRequest], ['delivered', '{}', '{}']);
    const again = await take();
    assert.ok(again.kind === 'spent' && again.state === 'delivered');
  });

  it('a delivery that cannot be written is told, and its events still reach the feed', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid');
    const told: string[] = [];
    const desk = createDeliveryDesk(broken({ advance: silent }), ({ payId }) => void told.push(payId));
    await desk.delivered(sale.record, { requestId: 'r', backendStatus: 200, durationMs: 1, journal: order().journal });
    assert.deepEqual(told, [till.terms.payId]);
    assert.deepEqual(
      till.flushed.map(({ type }) => type),
      ['resource.requested'],
    );
  });
});
