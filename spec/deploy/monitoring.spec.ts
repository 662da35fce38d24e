import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { PROMETHEUS_RULE, prometheusRule } from '../../deploy/monitoring/prometheus-rule.ts';
import { ACP_ERRORS } from '../../src/adapters/acp/error.ts';
import { ERRORS } from '../../src/errors.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { askAcp, type CheckoutTestbed, openCheckoutTestbed } from '../adapters/acp/testbed.ts';
import { pem } from '../config/sections/ap2.ts';
import { reviewOf } from '../sidecar/injector/reviews.ts';
import { ask, startInjector } from '../sidecar/injector/running-injector.ts';
import { EDITS } from '../support/acp/faults.ts';
import { NO_CHAIN } from '../support/config.ts';
import { type PreparedGateway, type PreparedParts, prepareGateway } from '../support/gateway-process.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { scrape, seriesIn } from '../telemetry/scrape.ts';
import { manifests, pick } from './manifest.ts';
import { renderComponents } from './rendered.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/monitoring');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}
const rules = (
  parse(readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  }
).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
};

/** Every query of the metrics, by the alert or panel that makes it. */
const queries = [
  ...rules.map(({ alert, expr }) => ({ who: `alert ${alert}`, expr })),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ who: `panel ${title}`, expr })),
  ),
];
/** A metric with its selector, as PromQL writes it. */
const SELECTED = /\b((?:acg|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g;
/** Prometheus itself puts these on every time series. */
const OF_THE_SCRAPE = new Set(['job', 'instance', 'le']);

describe('alerts and dashboard', () => {
  let testbed: Testbed;
  let checkout: CheckoutTestbed;
  const ends = new AsyncDisposableStack();
  let labels: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;
  before(async () => {
    testbed = await openTestbed();
    const proof = await testbed.proof('market_report', { city: 'Berlin' });
    await (await testbed.gateway.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof })).text();
    checkout = await openCheckoutTestbed();
    await provokeInvalidDocuments(checkout);
    const redis = await startRedis();
    ends.defer(() => redis.stop());
    const shared = {
      storage: { redis: { url: redis.url } },
      overrides: { signing: { key: pem() } },
    };
    const gateways = [
      testbed.gateway,
      checkout.gateway,
      await serve(ends, testbed),
      await serve(ends, testbed, shared),
      // Metrics of a network have its label where there are several.
      await serve(ends, testbed, {
        others: [{ chain: { ...NO_CHAIN, chainId: 1_337 }, facilitator: { mode: 'local' } }],
      }),
    ];
    const series = await Promise.all(gateways.map(({ managementUrl }) => scrape(managementUrl)));
    const injector = await startInjector(ends);
    await ask(injector, { body: reviewOf() });
    const ofInjector = seriesIn((await injector.management('/metrics')).text);
    labels = labelsIn([...series, ofInjector].flatMap((one) => [...one.keys()]));
  });
  after(async () => {
    await ends.disposeAsync();
    await Promise.all([testbed.close(), checkout.close()]);
  });

  for (const { who, expr } of queries) {
    it(`${who} selects only what a running gateway or injector shows`, () => {
      const asked = [...expr.matchAll(SELECTED)];
      assert.ok(asked.length > 0, expr);
      for (const [, name = '', selector = ''] of asked) {
        const known = labels.get(name) ?? assert.fail(`${name} is not shown`);
        for (const [, label = '', operator, value = ''] of selector.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
          if (OF_THE_SCRAPE.has(label)) continue;
          const values = known.get(label) ?? assert.fail(`${name} has no label ${label}`);
          for (const one of operator === '=~' ? value.split('|') : [value])
            assert.ok(
              one === '' || values.has(one) || (label === 'outcome' && (one in ERRORS || one in ACP_ERRORS)),
              `${name}{${label}="${one}"}`,
            );
        }
        for (const [, group = ''] of expr.matchAll(/\bby \(([^)]*)\)/g))
          for (const label of group.split(',').map((part) => part.trim()))
            assert.ok(OF_THE_SCRAPE.has(label) || known.has(label), `${name} has no label ${label}`);
      }
      assert.equal(expr.split('(').length, expr.split(')').length, 'its brackets are closed');
    });
  }

  it('every alert has a severity, a summary and a description', () => {
    assert.ok(rules.length >= 10);
    for (const {
      alert,
      labels: { severity },
      annotations,
    } of rules) {
      assert.match(severity, /^(critical|warning|info)$/, alert);
      assert.ok(annotations.summary.length > 20 && annotations.description.length > 20, alert);
    }
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  });

  it('an alert fires for each of the faults that cost money or calls', () => {
    const asked = rules.map(({ expr }) => expr).join('\n');
    for (const name of [
      'acg_payments_undelivered',
      'acg_paid_undelivered_total',
      'acg_refund_due_total',
      'acg_payments_uncertain',
      'acg_dropped_total',
      'acg_ledger_failures_total',
      'acg_shed_total',
      'acg_merchant_exposed',
      'acg_backend_reachable',
      'acg_checkout_claims_total{outcome="unavailable"}',
      'acg_checkout_unstored_total',
      'acg_checkout_unopened_total',
      'acg_checkout_invalid_documents_total',
      'acg_calls_total{channel="acp",outcome=~"processing_error|service_unavailable"}',
    ])
      assert.ok(asked.includes(name), name);
  });

  it('no critical alert fires for buyers that leave early', () => {
    for (const {
      alert,
      expr,
      labels: { severity },
    } of rules)
      if (severity === 'critical' && expr.includes('undelivered'))
        assert.match(expr, /acg_paid_undelivered_total\{cause=~"merchant\|gateway"\}/, alert);
    const counted = queries.filter(({ expr }) => expr.includes('acg_paid_undelivered_total'));
    for (const { who, expr } of counted) assert.match(expr, /cause/, who);
  });

  it('the alert of refunds, which stops after a day, names the list of all', () => {
    const { expr, annotations } = rules.find(({ alert }) => alert === 'RefundDue') ?? assert.fail('no such alert');
    assert.match(expr, /acg_refund_due_total\[24h\]/);
    assert.match(annotations.description, /GET \/api\/receipts\?delivered=false/);
  });

  it('every metric of the gateway is in the dashboard or in an alert', () => {
    const asked = queries.map(({ expr }) => expr).join('\n');
    const own = [...labels.keys()].filter((name) => name.startsWith('acg_') && !/_(sum|count)$/.test(name));
    assert.deepEqual(
      own.filter((name) => !asked.includes(name)),
      [],
    );
  });

  it('no two panels overlap', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    assert.equal(new Set(cells).size, cells.length);
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  });
});

describe('the monitoring of a cluster', () => {
  const objects = renderComponents('monitoring');

  it('has the alerts of the rule file', () => {
    assert.equal(readFileSync(PROMETHEUS_RULE, 'utf8'), prometheusRule(), 'node deploy/monitoring/prometheus-rule.ts');
    const { groups } = pick(objects, 'PrometheusRule', 'agent-commerce-gateway').spec as unknown as {
      readonly groups: readonly { readonly rules: readonly Rule[] }[];
    };
    assert.deepEqual(
      groups.flatMap((group) => group.rules),
      rules,
    );
  });

  it('scrapes the management port of every pod that has the gateway', () => {
    const { selector, podMetricsEndpoints } = pick(objects, 'PodMonitor', 'merchant-agents').spec as unknown as {
      readonly selector: unknown;
      readonly podMetricsEndpoints: readonly { readonly port: string; readonly path: string }[];
    };
    assert.deepEqual(selector, pick(objects, 'NetworkPolicy', 'merchant-agents').spec?.podSelector);
    assert.deepEqual(
      podMetricsEndpoints.map(({ port, path }) => [port, path]),
      [['agent-admin', '/metrics']],
    );
  });

  it('scrapes the management port of the injector, which its network policy opens for it', () => {
    const read = (file: string) => manifests(readFileSync(join(FOLDER, '..', file), 'utf8'))[0] ?? assert.fail(file);
    const monitor = read('components/monitoring-injector/podmonitor.yaml');
    const deployment = read('admission/webhook/deployment.yaml');
    const { selector, podMetricsEndpoints } = monitor.spec as unknown as {
      readonly selector: unknown;
      readonly podMetricsEndpoints: readonly { readonly port: string }[];
    };
    assert.deepEqual(selector, deployment.spec?.selector);
    const ports = deployment.spec?.template?.spec.containers.flatMap((container) => container.ports ?? []);
    const scraped = podMetricsEndpoints.map(({ port }) => ports?.find(({ name }) => name === port)?.containerPort);
    assert.deepEqual(scraped, [8403]);
  });

  it('gives Grafana the dashboard under a name that stays', () => {
    const map = objects.find(({ metadata }) => metadata.name === 'agent-commerce-gateway-dashboard');
    assert.equal(map?.metadata.labels?.['grafana_dashboard'], '1');
    assert.deepEqual(JSON.parse(map?.data?.['agent-commerce-gateway.json'] ?? ''), dashboard);
  });
});

const LISTENS_WITHIN_MS = 20_000;

/** A gateway as `acg serve` opens it, which shows what only a process has. */
async function serve(
  ends: AsyncDisposableStack,
  { chain, backend }: Testbed,
  more: Partial<PreparedParts> = {},
): Promise<PreparedGateway> {
  const directory = await temporaryDirectory(ends, 'monitoring-');
  const parts = { chain, backendUrl: backend.url, facilitator: { mode: 'local' } as const };
  const prepared = await prepareGateway(directory, { ...parts, ...more });
  const gateway = await prepared.start();
  ends.defer(async () => void (await gateway.stop()));
  // The management listener opens last.
  const deadline = performance.now() + LISTENS_WITHIN_MS;
  const listens = async (): Promise<boolean> =>
    fetch(`${prepared.managementUrl}/metrics`).then(
      (answer) => answer.ok,
      () => false,
    );
  while (!(await listens())) {
    assert.ok(performance.now() < deadline, gateway.output());
    await delay(50);
  }
  return prepared;
}

/** Members of a document have a time series only after a backend was wrong there. */
async function provokeInvalidDocuments({ gateway, backend }: CheckoutTestbed): Promise<void> {
  const { id } = JSON.parse((await askAcp(gateway.url)).text) as { readonly id: string };
  for (const [edit, status] of [
    ['wrong-id', 200],
    ['without-totals', 502],
  ] as const) {
    backend.misbehave({ kind: 'document', edit: EDITS[edit] });
    const answer = await askAcp(gateway.url, { method: 'GET', path: `/checkout_sessions/${id}` });
    assert.equal(answer.status, status, answer.text);
  }
}

/** The values of each label of each metric. */
function labelsIn(series: Iterable<string>): ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Map<string, Set<string>>>();
  for (const one of series) {
    const [name = '', ...rest] = one.split('{');
    const of = found.get(name) ?? new Map<string, Set<string>>();
    found.set(name, of);
    for (const [, label = '', value = ''] of rest.join('{').matchAll(/(\w+)="([^"]*)"/g))
      of.set(label, (of.get(label) ?? new Set()).add(value));
  }
  return found;
}
