import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { Registry } from '@prometheus-io/client';
import type { EventDraft } from '../../../src/events/event.ts';
import type { PaymentLedger, PaymentRecord, PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import type { NetworkFacts } from '../../../src/payments/rail.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { createDurations } from '../../../src/telemetry/metrics/durations.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { paymentMetrics, showRail, undeliveredCause } from '../../../src/telemetry/metrics/payment-metrics.ts';
import { event, LEASE_MS, move, receipt, TRANSACTION, terms } from '../../payments/ledger/samples.ts';
import { done, LIMITS } from '../../store/opened.ts';
import { seriesIn } from '../scrape.ts';

const failed = (reason?: string): EventDraft => ({
  ...event('backend.failed', 'req-1'),
  data: { code: 'BACKEND_ERROR', ...(reason === undefined ? {} : { reason }) },
});

describe('why a paid call was not delivered', () => {
  for (const { what, code, events = [], cause } of [
    { what: 'a backend that answered 500', code: 'backend_status_500', events: [failed()], cause: 'merchant' },
    { what: 'a backend that was too slow', code: 'timeout', events: [failed('timeout')], cause: 'merchant' },
    { what: 'the end of this process', code: 'aborted', events: [failed('aborted')], cause: 'gateway' },
    { what: 'an earlier attempt that died', code: 'interrupted', cause: 'gateway' },
    { what: 'no memory for the answer', code: 'gateway_busy', cause: 'gateway' },
    { what: 'a bug', code: 'internal_error', cause: 'gateway' },
    { what: 'a buyer who hung up', code: 'client_gone', cause: 'client_gone' },
    { what: 'a buyer who was not there when the answer was fetched', code: undefined, cause: 'client_gone' },
  ])
    it(`${what}: ${cause}`, () => {
      const metadata = code === undefined ? { answerKept: true as const } : { backendErrorCode: code };
      const written = receipt('receipt_00000000-0000-7000-8000-000000000001', 'req-1', { delivered: false, metadata });
      assert.equal(undeliveredCause({ receipt: written, events }), cause);
    });
});

const { network, asset } = terms();
const series = (resource: string, token = asset): string =>
  `acg_settled_units_total{resource="${resource}",network="${network}",asset="${token}"}`;

describe('money that was taken', () => {
  const store = openSqliteStore({ path: ':memory:', limits: LIMITS });
  after(() => store.close());

  const counting = (ledger: PaymentLedger = store.ledger) => {
    const registry = new Registry();
    const durations = createDurations();
    const offers = new Map(['market_report', 'cities'].map((id) => [id, { requirements: { network, asset } }]));
    const metrics = paymentMetrics(
      registry,
      durations,
      (id) => offers.has(id),
      () => offers,
    );
    return {
      ledger: metrics.ledger(ledger),
      taken: async () => seriesIn(await registry.metrics()),
      timed: () => seriesIn(durations.text()),
    };
  };
  const begun = async (ledger: PaymentLedger, changes: Partial<PaymentTerms>): Promise<PaymentRecord> => {
    const asked = { terms: terms(undefined, changes), owner: 'buyer', leaseMs: LEASE_MS };
    const reserved = await ledger.reserve(asked);
    assert.equal(reserved.kind, 'granted');
    return done(await ledger.advance(move(reserved.record, 'settling')));
  };
  const settle = async (ledger: PaymentLedger, changes: Partial<PaymentTerms>): Promise<PaymentRecord> =>
    done(await ledger.advance(move(await begun(ledger, changes), 'settled')));

  it('is shown from 0 for each resource that has a price', async () => {
    const found = await counting().taken();
    assert.deepEqual([found.get(series('market_report')), found.get(series('cities'))], [0, 0]);
  });

  it('is counted once a payment, when it is settled, by resource, network and asset', async () => {
    const { ledger, taken } = counting();
    await begun(ledger, {});
    const paid = await settle(ledger, { units: '10000' });
    await settle(ledger, { units: '250' });
    await settle(ledger, { units: '7', resourceId: 'cities' });
    const other = `0x${'4'.repeat(40)}`;
    await settle(ledger, { units: '5', asset: other });
    done(await ledger.advance(move(paid, 'delivered')));
    const found = await taken();
    const sums = [series('market_report'), series('cities'), series('market_report', other)];
    assert.deepEqual(
      sums.map((name) => found.get(name)),
      [10_250, 7, 5],
    );
  });

  it('is timed apart from the last write, which may wait for others', async () => {
    const { ledger, timed } = counting();
    done(await ledger.advance(move(await settle(ledger, {}), 'delivered')));
    const counts = ['advance', 'deliver'].map((name) => timed().get(`acg_ledger_seconds_count{operation="${name}"}`));
    assert.deepEqual(counts, [2, 1]);
  });

  it('is counted once when the reply of the store was lost and the write is repeated', async () => {
    let lost = false;
    const { ledger, taken } = counting({
      ...store.ledger,
      async advance(command) {
        const answer = await store.ledger.advance(command);
        if (command.to !== 'settled' || lost) return answer;
        lost = true;
        throw new Error('the reply is lost');
      },
    });
    const command = move(await begun(ledger, { units: '10000' }), 'settled');
    await assert.rejects(ledger.advance(command), /lost/);
    done(await ledger.advance(command));
    assert.equal((await taken()).get(series('market_report')), 10_000);
  });

  it('is summed exactly beyond what a double holds, and only rounded when it is shown', async () => {
    const { ledger, taken } = counting();
    // As doubles, 2^53 + 1 is 2^53: each 1 would be lost.
    for (const units of [(2n ** 53n).toString(), '1', '1']) await settle(ledger, { units });
    assert.equal((await taken()).get(series('market_report')), 2 ** 53 + 2);
  });

  it('has no resource that is not in the catalogue: an old record makes no series', async () => {
    const { ledger, taken } = counting();
    await settle(ledger, { units: '3', resourceId: 'gone' });
    await settle(ledger, { units: '4', resourceId: 'gone_too' });
    const found = await taken();
    assert.equal(found.get(series('')), 7);
    assert.ok(![...found.keys()].some((name) => name.includes('resource="gone')));
  });

  it('is not counted again when the chain shows what the store had lost', async () => {
    const { ledger, taken } = counting();
    const facts = { evidence: 'logs', transaction: TRANSACTION, recovered: 'chain' } as const;
    done(await ledger.advance(move(await begun(ledger, {}), 'settled', { facts })));
    assert.equal((await taken()).get(series('market_report')), 0);
  });
});

describe('the facts of a rail', () => {
  const rail = (transfers: number, headAgeMs: number, kind?: 'stall'): NetworkFacts => ({
    transfersLeft: () => transfers,
    chainState: () => ({ faults: kind === undefined ? [] : [{ kind, cause: 'no block' }], headAgeMs }),
  });
  const shown = async (shows: Parameters<typeof showRail>[1]) => {
    const metrics = createMetrics({ sold: () => true, offers: () => new Map(), census: () => Promise.reject() });
    showRail(metrics, shows);
    return [...seriesIn(await metrics.text())].filter(([name]) => /^acg_(chain|relayer)/.test(name));
  };

  it('have no label of the network where there is one', async () => {
    assert.deepEqual(await shown(rail(7, 2_000, 'stall')), [
      ['acg_relayer_transfers_left', 7],
      ['acg_chain_fault{cause="stall"}', 1],
      ['acg_chain_fault{cause="clock"}', 0],
      ['acg_chain_fault{cause="missing"}', 0],
      ['acg_chain_head_age_seconds', 2],
    ]);
  });

  it('are those of each network where there are several, the worst of two tokens on one', async () => {
    const perNetwork = [
      { network: 'eip155:8453', ...rail(7, 2_000) },
      { network: 'eip155:137', transfersLeft: () => undefined },
      { network: 'eip155:8453', ...rail(3, 5_000, 'stall') },
    ];
    assert.deepEqual(await shown({ perNetwork }), [
      ['acg_relayer_transfers_left{network="eip155:8453"}', 3],
      ['acg_chain_fault{network="eip155:8453",cause="stall"}', 1],
      ['acg_chain_fault{network="eip155:8453",cause="clock"}', 0],
      ['acg_chain_fault{network="eip155:8453",cause="missing"}', 0],
      ['acg_chain_head_age_seconds{network="eip155:8453"}', 5],
    ]);
  });
});
