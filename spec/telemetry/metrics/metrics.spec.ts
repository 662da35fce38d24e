import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from '@prometheus-io/client';
import type { PaymentCensus } from '../../../src/payments/ledger/document-ledger.ts';
import { createDurations } from '../../../src/telemetry/metrics/durations.ts';
import { censusMetrics, createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { seriesIn } from '../scrape.ts';

const NOTHING = { open: 0, uncertain: 0, undelivered: 0 };
const metricsOf = () => createMetrics({ sold: () => true, offers: () => new Map(), census: async () => NOTHING });

describe('durations', () => {
  it('are counted in every bucket that is not below them, the bound itself included', () => {
    const durations = createDurations();
    const settle = durations.histogram('acg_layer_seconds', 'What it is.', 'layer')('settle');
    for (const ms of [0.1, 0.11, 60_000, 60_001]) settle.took(ms);
    const series = seriesIn(durations.text());
    const bucket = (le: string): number | undefined =>
      series.get(`acg_layer_seconds_bucket{layer="settle",le="${le}"}`);
    assert.deepEqual([bucket('0.0001'), bucket('0.0005'), bucket('30'), bucket('60'), bucket('+Inf')], [1, 2, 2, 3, 4]);
    assert.equal(series.get('acg_layer_seconds_count{layer="settle"}'), 4);
    assert.ok(Math.abs((series.get('acg_layer_seconds_sum{layer="settle"}') ?? 0) - 120.00121) < 1e-9);
  });

  it('of one label value are the same for all callers', () => {
    const durations = createDurations();
    const by = durations.histogram('acg_call_seconds', 'What it is.', 'channel');
    by('http').took(1);
    by('http').took(1);
    assert.equal(seriesIn(durations.text()).get('acg_call_seconds_count{channel="http"}'), 2);
  });
});

describe('facts of other modules', () => {
  it('are read in a scrape, and not shown while they are not known', async () => {
    const metrics = metricsOf();
    let known: number | undefined = 3;
    metrics.gauge({ name: 'acg_streams', help: 'h', read: () => known });
    metrics.counter({ name: 'acg_streams_total', help: 'h', read: () => known });
    assert.equal(seriesIn(await metrics.text()).get('acg_streams'), 3);
    known = undefined;
    const unknown = seriesIn(await metrics.text());
    assert.deepEqual([unknown.has('acg_streams'), unknown.has('acg_streams_total')], [false, false]);
    known = 0;
    assert.equal(seriesIn(await metrics.text()).get('acg_streams'), 0);
  });

  it('with a label show what is there now and nothing that was there before', async () => {
    const metrics = metricsOf();
    let known: Readonly<Record<string, number>> = { a: 1 };
    metrics.gauge({ name: 'acg_things', help: 'h', label: 'kind', read: async () => known });
    metrics.counter({ name: 'acg_things_total', help: 'h', label: 'kind', read: () => known });
    await metrics.text();
    known = { a: 2, b: 5 };
    const series = seriesIn(await metrics.text());
    assert.deepEqual([series.get('acg_things{kind="a"}'), series.get('acg_things{kind="b"}')], [2, 5]);
    assert.deepEqual([series.get('acg_things_total{kind="a"}'), series.get('acg_things_total{kind="b"}')], [2, 5]);
    known = {};
    assert.equal([...seriesIn(await metrics.text()).keys()].filter((name) => name.startsWith('acg_things')).length, 0);
  });

  it('that cannot be read do not fail the others', async () => {
    const metrics = metricsOf();
    const read = async (): Promise<number> => assert.fail('not now');
    metrics.gauge({ name: 'acg_bad', help: 'h', read });
    metrics.gauge({ name: 'acg_good', help: 'h', read: () => 1 });
    const series = seriesIn(await metrics.text());
    assert.deepEqual([series.has('acg_bad'), series.get('acg_good')], [false, 1]);
  });
});

describe('open payments', () => {
  const counting = (census: () => Promise<PaymentCensus>) => {
    const registry = new Registry();
    let now = 0;
    censusMetrics(registry, census, () => now);
    return {
      series: async () => seriesIn(await registry.metrics()),
      advance: (ms: number) => {
        now += ms;
      },
    };
  };

  it('are counted once in five seconds, for all scrapes', async () => {
    let asked = 0;
    const { series, advance } = counting(async () => {
      asked += 1;
      return { open: asked, uncertain: 2, undelivered: 1 };
    });
    await Promise.all([series(), series(), series()]);
    advance(4_999);
    assert.equal((await series()).get('acg_payments_open'), 1);
    advance(1);
    const later = await series();
    assert.equal(later.get('acg_payments_open'), 2);
    assert.equal(later.get('acg_payments_uncertain'), 2);
    assert.equal(later.get('acg_payments_undelivered'), 1);
    assert.equal(asked, 2);
  });

  for (const { store, census } of [
    { store: 'fails', census: () => Promise.reject(new Error('away')) },
    { store: 'does not answer', census: () => new Promise<never>(() => undefined) },
  ]) {
    it(`are not shown when the store ${store}, and that is counted; the scrape waits at most 300 ms`, async () => {
      const { series } = counting(census);
      const began = performance.now();
      const found = await series();
      assert.ok(performance.now() - began < 1_000);
      assert.deepEqual([...found.keys()], ['acg_census_failures_total']);
      // The counter is written beside the gauges, so the next scrape shows it for certain.
      assert.equal((await series()).get('acg_census_failures_total'), 1);
    });
  }

  it('come back with the store, and are never old numbers meanwhile', async () => {
    let away = false;
    const { series, advance } = counting(async () => {
      if (away) throw new Error('away');
      return { open: 7, uncertain: 0, undelivered: 0 };
    });
    assert.equal((await series()).get('acg_payments_open'), 7);
    away = true;
    advance(5_000);
    assert.equal((await series()).has('acg_payments_open'), false);
    away = false;
    advance(5_000);
    assert.equal((await series()).get('acg_payments_open'), 7);
  });
});
