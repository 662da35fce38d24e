import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { type CheckoutWatch, MAX_POINTERS, watchCheckouts } from '../../../src/telemetry/metrics/checkout-metrics.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { seriesIn } from '../scrape.ts';

interface Watched {
  readonly watch: CheckoutWatch;
  readonly lines: readonly Record<string, unknown>[];
  series(): Promise<ReadonlyMap<string, number>>;
}

function watched(): Watched {
  const lines: Record<string, unknown>[] = [];
  const metrics = createMetrics({
    sold: () => true,
    offers: () => new Map(),
    census: async () => ({ open: 0, uncertain: 0, undelivered: 0 }),
  });
  const log = createLog('info', [], { write: (line) => void lines.push(JSON.parse(line)) });
  const watch = watchCheckouts(metrics, log);
  return { watch, lines, series: async () => seriesIn(await metrics.text()) };
}

const FAULT = {
  operation: 'completeCheckoutSession',
  requestId: 'acp_1',
  callId: 'call_1',
  reason: 'schema',
  pointer: '$.line_items[12].totals[3].type',
  keyword: 'enum',
} as const;

describe('what operators see of checkouts', () => {
  it('begins with a zero for everything that an alert may watch', async () => {
    const series = await watched().series();
    for (const outcome of ['first', 'again', 'done', 'in_flight', 'session_busy', 'conflict', 'unavailable'])
      assert.equal(series.get(`acg_checkout_claims_total{outcome="${outcome}"}`), 0, outcome);
    for (const why of [
      'timeout',
      'reset',
      'status',
      'invalid_document',
      'lease_expired',
      'in_progress',
      'unopened',
      'unowned',
    ])
      assert.equal(series.get(`acg_checkout_unknown_total{why="${why}"}`), 0, why);
    for (const name of ['leases_expired', 'fenced', 'unstored', 'unopened', 'foreign_sessions'])
      assert.equal(series.get(`acg_checkout_${name}_total`), 0, name);
  });

  it('are all counted, each under its own name', async () => {
    const { watch, lines, series } = watched();
    watch.claimed('again');
    watch.leaseExpired();
    watch.unknown('timeout');
    watch.fenced();
    watch.unstored(new Error('no store'));
    watch.unopened();
    watch.foreign();
    const over = watch.exchanging();
    watch.exchanging();
    over();
    watch.contradiction({
      operation: 'getCheckoutSession',
      requestId: 'acp_1',
      callId: 'call_1',
      contradiction: 'session_id',
    });
    const counted = await series();
    const names = [
      'acg_checkout_claims_total{outcome="again"}',
      'acg_checkout_leases_expired_total',
      'acg_checkout_unknown_total{why="timeout"}',
      'acg_checkout_fenced_total',
      'acg_checkout_unstored_total',
      'acg_checkout_unopened_total',
      'acg_checkout_foreign_sessions_total',
      'acg_checkout_exchanges_in_flight',
      'acg_checkout_contradictions_total{operation="getCheckoutSession",contradiction="session_id"}',
    ];
    for (const name of names) assert.equal(counted.get(name), 1, name);
    assert.deepEqual(
      lines.map(({ level, msg }) => [level, msg]),
      [
        [40, 'the end of a checkout call is not kept'],
        [40, 'a kept checkout answer cannot be opened: is its sealing key gone?'],
        [50, "the merchant opened a session that is another client's: its ids must be unique"],
        [40, "the merchant's document contradicts itself or the call"],
      ],
    );
  });

  it('an invalid document: a line with its JSON path, and a count without indices', async () => {
    const { watch, lines, series } = watched();
    watch.invalidDocument(FAULT);
    watch.invalidDocument({ ...FAULT, pointer: '$.line_items[0].totals[0].type' });
    const name = 'acg_checkout_invalid_documents_total';
    const label = '{operation="completeCheckoutSession",pointer="$.line_items[].totals[].type"}';
    assert.equal((await series()).get(name + label), 2);
    const { level, time: _, msg, ...facts } = lines[0] ?? assert.fail();
    assert.deepEqual([level, msg], [40, 'the merchant answered with an invalid document']);
    assert.deepEqual(facts, FAULT);
  });

  it('a backend with ever new errors cannot fill the memory', async () => {
    const { watch, series } = watched();
    for (let at = 0; at < 500; at += 1) watch.invalidDocument({ ...FAULT, pointer: `$.member_${at}` });
    const invalid = [...(await series())].filter(([name]) => name.startsWith('acg_checkout_invalid_documents_total'));
    assert.equal(invalid.length, MAX_POINTERS + 1);
    const [, others] = invalid.find(([name]) => name.includes('pointer="other"')) ?? [];
    assert.equal(others, 500 - MAX_POINTERS);
  });

  it('a fault in every call writes ten lines a second', () => {
    const { watch, lines } = watched();
    for (let call = 0; call < 1_000; call += 1) watch.invalidDocument(FAULT);
    assert.equal(lines.length, 10);
  });
});
