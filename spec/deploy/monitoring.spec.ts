import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { ACP_ERRORS } from '../../src/adapters/acp/error.ts';
import { ERRORS } from '../../src/errors.ts';
import { askAcp, type CheckoutShop, openCheckoutShop } from '../adapters/acp/shop.ts';
import { EDITS } from '../support/acp/faults.ts';
import { openSeller, type Seller } from '../support/seller.ts';
import { scrape } from '../telemetry/scrape.ts';

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

/** Every question that is asked of the metrics, by who asks it. */
const questions = [
  ...rules.map(({ alert, expr }) => ({ who: `alert ${alert}`, expr })),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ who: `panel ${title}`, expr })),
  ),
];
/** A metric with its selector, as PromQL writes it. */
const ASKED = /\b((?:acg|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g;
/** Prometheus itself puts these on every time series. */
const OF_THE_SCRAPE = new Set(['job', 'instance', 'le']);

describe('alerts and dashboard', () => {
  let seller: Seller;
  let checkout: CheckoutShop;
  let labels: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;
  before(async () => {
    seller = await openSeller();
    const proof = await seller.proof('market_report', { city: 'Berlin' });
    await (await seller.shop.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof })).text();
    checkout = await openCheckoutShop();
    await askBadly(checkout);
    const shops = [seller.shop, checkout.shop];
    const series = await Promise.all(shops.map(({ managementUrl }) => scrape(managementUrl)));
    labels = labelsIn(series.flatMap((one) => [...one.keys()]));
  });
  after(() => Promise.all([seller.close(), checkout.close()]));

  for (const { who, expr } of questions) {
    it(`${who} asks for what a running gateway shows`, () => {
      const asked = [...expr.matchAll(ASKED)];
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

  it('every alert says how bad it is, what it means and what to do', () => {
    assert.ok(rules.length >= 10);
    for (const { alert, labels: said, annotations } of rules) {
      assert.match(said.severity, /^(critical|warning|info)$/, alert);
      assert.ok(annotations.summary.length > 20 && annotations.description.length > 20, alert);
    }
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  });

  it('an alert fires for what was paid and not delivered, for refunds, losses, a failing store and shedding', () => {
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
    ])
      assert.ok(asked.includes(name), name);
  });

  it('an alert fires for checkouts that the store, the merchant or a missing key spoil', () => {
    const asked = rules.map(({ expr }) => expr).join('\n');
    for (const name of [
      'acg_checkout_claims_total{outcome="unavailable"}',
      'acg_checkout_unstored_total',
      'acg_checkout_unopened_total',
      'acg_checkout_invalid_documents_total',
      'acg_calls_total{channel="acp",outcome=~"processing_error|service_unavailable"}',
    ])
      assert.ok(asked.includes(name), name);
  });

  it('nobody is woken up for buyers who hang up', () => {
    for (const { alert, expr, labels: said } of rules)
      if (said.severity === 'critical' && expr.includes('undelivered'))
        assert.match(expr, /acg_paid_undelivered_total\{cause=~"merchant\|gateway"\}/, alert);
    const counted = questions.filter(({ expr }) => expr.includes('acg_paid_undelivered_total'));
    for (const { who, expr } of counted) assert.match(expr, /cause/, who);
  });

  it('the alert of refunds names the list, for it forgets what is older than a day', () => {
    const { expr, annotations } = rules.find(({ alert }) => alert === 'RefundDue') ?? assert.fail('no such alert');
    assert.match(expr, /acg_refund_due_total\[24h\]/);
    assert.match(annotations.description, /GET \/api\/receipts\?delivered=false/);
  });

  it('every metric of the gateway stands in the dashboard or in an alert', () => {
    const asked = questions.map(({ expr }) => expr).join('\n');
    const own = [...labels.keys()].filter((name) => name.startsWith('acg_') && !/_(sum|count)$/.test(name));
    assert.deepEqual(
      own.filter((name) => !asked.includes(name)),
      [],
    );
  });

  it('no two panels lie on each other', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    assert.equal(new Set(cells).size, cells.length);
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  });
});

/** A place of a document has a time series only once a merchant was wrong there. */
async function askBadly({ shop, merchant }: CheckoutShop): Promise<void> {
  const { id } = JSON.parse((await askAcp(shop.url)).text) as { readonly id: string };
  for (const [edit, status] of [
    ['wrong-id', 200],
    ['without-totals', 502],
  ] as const) {
    merchant.misbehave({ kind: 'document', edit: EDITS[edit] });
    const answer = await askAcp(shop.url, { method: 'GET', path: `/checkout_sessions/${id}` });
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
