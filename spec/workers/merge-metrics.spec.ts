import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { createMetricsMerger, GAUGE_RULES, oneAtATime, ruleOf } from '../../src/workers/merge-metrics.ts';
import { seriesIn } from '../telemetry/scrape.ts';
import { sources, texts } from '../tidy/sources.ts';

const text = (calls: number, inFlight: number, reachable: number): string =>
  [
    '# HELP acg_calls_total Calls.',
    '# TYPE acg_calls_total counter',
    `acg_calls_total{resource="a b"} ${calls}`,
    '',
    '# HELP acg_step_seconds Time.',
    '# TYPE acg_step_seconds histogram',
    `acg_step_seconds_bucket{step="settle",le="0.5"} ${calls}`,
    `acg_step_seconds_bucket{step="settle",le="+Inf"} ${calls}`,
    `acg_step_seconds_sum{step="settle"} 0.25`,
    `acg_step_seconds_count{step="settle"} ${calls}`,
    '# HELP acg_calls_in_flight Slots.',
    '# TYPE acg_calls_in_flight gauge',
    `acg_calls_in_flight ${inFlight}`,
    '# HELP acg_backend_reachable Whether.',
    '# TYPE acg_backend_reachable gauge',
    `acg_backend_reachable ${reachable}`,
    '# HELP acg_component_status Worst.',
    '# TYPE acg_component_status gauge',
    `acg_component_status{component="redis"} ${reachable === 1 ? 0 : 2}`,
    '',
  ].join('\n');
const OWN = '# HELP acg_workers Workers.\n# TYPE acg_workers gauge\nacg_workers 2\n';

describe('the metrics of all workers', () => {
  it('are sums of what counts, and what the table says of gauges', () => {
    const merged = createMetricsMerger().merge(
      new Map([
        [1, text(3, 5, 1)],
        [2, text(4, 6, 0)],
      ]),
      OWN,
    );
    assert.deepEqual(Object.fromEntries(seriesIn(merged)), {
      'acg_calls_total{resource="a b"}': 7,
      'acg_step_seconds_bucket{step="settle",le="0.5"}': 7,
      'acg_step_seconds_bucket{step="settle",le="+Inf"}': 7,
      'acg_step_seconds_sum{step="settle"}': 0.5,
      'acg_step_seconds_count{step="settle"}': 7,
      acg_calls_in_flight: 11,
      acg_backend_reachable: 0,
      'acg_component_status{component="redis"}': 2,
      acg_workers: 2,
    });
    assert.equal(merged.match(/^# TYPE acg_calls_total counter$/gm)?.length, 1);
    assert.ok(merged.includes('# HELP acg_calls_total Calls.\n# TYPE acg_calls_total counter\nacg_calls_total{'));
  });

  it('never fall where they count, also when a worker ends, and forget its gauges', () => {
    const merger = createMetricsMerger();
    const calls = (workers: ReadonlyMap<number, string>) => {
      const series = seriesIn(merger.merge(workers, OWN));
      return [series.get('acg_calls_total{resource="a b"}'), series.get('acg_calls_in_flight')];
    };
    assert.deepEqual(
      calls(
        new Map([
          [1, text(3, 5, 1)],
          [2, text(4, 6, 1)],
        ]),
      ),
      [7, 11],
    );
    assert.deepEqual(calls(new Map([[2, text(5, 6, 1)]])), [8, 6]);
    assert.deepEqual(
      calls(
        new Map([
          [2, text(5, 6, 1)],
          [3, text(1, 0, 1)],
        ]),
      ),
      [9, 6],
    );
    assert.deepEqual(calls(new Map([[3, text(2, 0, 1)]])), [10, 0]);
  });

  it('keep what a worker counted that does not answer, once, and not its gauges', () => {
    const merger = createMetricsMerger();
    const scrape = (one: string | undefined) => {
      const series = seriesIn(
        merger.merge(
          new Map([
            [1, one],
            [2, text(4, 6, 1)],
          ]),
          OWN,
        ),
      );
      return [series.get('acg_calls_total{resource="a b"}'), series.get('acg_calls_in_flight')];
    };
    assert.deepEqual(scrape(undefined), [4, 6]);
    assert.deepEqual(scrape(text(3, 5, 1)), [7, 11]);
    assert.deepEqual(
      [scrape(undefined), scrape(undefined)],
      [
        [7, 6],
        [7, 6],
      ],
    );
    assert.deepEqual(scrape(text(5, 1, 1)), [9, 7]);
  });

  it('are scraped one time after the other: who asks meanwhile gets the same', async () => {
    const runs: PromiseWithResolvers<number>[] = [];
    const scrape = oneAtATime(() => {
      runs.push(Promise.withResolvers());
      return runs.at(-1)?.promise ?? Promise.reject(new Error('no run'));
    });
    const [one, other] = [scrape(), scrape()];
    runs[0]?.resolve(1);
    assert.deepEqual([await one, await other, runs.length], [1, 1, 1]);
    const failed = scrape();
    runs[1]?.reject(new Error('late'));
    await assert.rejects(failed, { message: 'late' });
    const last = scrape();
    runs[2]?.resolve(3);
    assert.equal(await last, 3);
  });

  it('keep a value that another worker does not know', () => {
    const merged = (one: number | string, other: number | string) =>
      seriesIn(
        createMetricsMerger().merge(
          new Map(
            [one, other].map((value, i) => [i, `# HELP g g\n# TYPE nodejs_heap_x gauge\nnodejs_heap_x ${value}\n`]),
          ),
          '',
        ),
      ).get('nodejs_heap_x');
    assert.deepEqual([merged('Nan', 2), merged(2, 'Nan'), merged(1, 2)], [2, 2, 3]);
  });

  it('have a rule for every gauge that is in the sources or comes from Node', async () => {
    const inSources = sources
      .filter((file) => !file.includes('/injector/'))
      .flatMap((file) => [...(texts.get(file) ?? '').matchAll(/auge\(\s*\{?\s*(?:name: )?'(acg_\w+)'/g)])
      .map(([, name = '']) => name);
    assert.ok(inSources.length > 20, 'the pattern finds them');
    const metrics = createMetrics({
      sold: () => true,
      offers: () => new Map(),
      census: async () => ({ open: 0, uncertain: 0, undelivered: 0 }),
    });
    const fromNode = [...(await metrics.text()).matchAll(/^# TYPE (\S+) gauge$/gm)].map(([, name = '']) => name);
    for (const name of [...inSources, ...fromNode])
      assert.ok(ruleOf(name), `${name}: say in GAUGE_RULES what all workers have`);
    for (const name of Object.keys(GAUGE_RULES))
      assert.ok(
        [...inSources, ...fromNode].some((gauge) => gauge === name || (name.endsWith('_') && gauge.startsWith(name))),
        `${name} is no gauge any more`,
      );
  });
});
