import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';

const RUNBOOK = readFileSync('docs/runbook.md', 'utf8');
const SOURCES = globSync('src/**/*.ts')
  .map((file) => readFileSync(file, 'utf8'))
  .join();
/** Log lines that are quoted; the sources may put a value in the place of the ellipsis. */
const LOG_LINE = /log (?:line|says)\s+`([^`]+)`/g;

interface Rule {
  readonly alert: string;
  readonly annotations: { readonly runbook_url?: string };
}
const { groups } = parse(readFileSync('deploy/monitoring/alerts.yaml', 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

describe('docs/runbook.md', () => {
  const sections = new Map(
    RUNBOOK.split(/^## /m)
      .slice(1)
      .map((section) => {
        const [heading = ''] = section.split('\n');
        return [heading.toLowerCase().replaceAll(' ', '-'), section] as const;
      }),
  );

  for (const { alert, annotations } of rules)
    if (annotations.runbook_url !== undefined)
      it(`has the section that the alert ${alert} names`, () => {
        const [document, section = ''] = annotations.runbook_url?.split('#') ?? [];
        assert.equal(document, 'docs/runbook.md');
        const text = sections.get(section) ?? assert.fail(section);
        assert.ok(section === 'first-look' || text.includes(`\`${alert}\``), `${section} does not name it`);
      });

  it('names alerts that there are', () => {
    const named = [...RUNBOOK.matchAll(/\*\*Shows\.\*\*[\s\S]*?(?:;|\n\n)/g)].flatMap(([shows]) =>
      [...shows.matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, alert]) => alert),
    );
    assert.ok(named.length > 15);
    assert.deepEqual(
      named.filter((name) => !rules.some(({ alert }) => alert === name)),
      [],
    );
  });

  it('names metrics that there are', () => {
    const asked = [...RUNBOOK.matchAll(/shown '([^']+)'/g)].flatMap(([, names = '']) =>
      names
        .replace('payments_(open|uncertain|undelivered)', 'payments_open|payments_uncertain|payments_undelivered')
        .split('|')
        .map((name) => `acg_${name}`),
    );
    const named = [...RUNBOOK.matchAll(/\bacg_[a-z_]+/g)].map(([name]) => name);
    // A spec of these files asks a running gateway for every metric in them, and has all in them.
    const known = new Set(
      ['alerts.yaml', 'dashboard.json'].flatMap((file) =>
        readFileSync(`deploy/monitoring/${file}`, 'utf8').match(/\bacg_[a-z_]+/g),
      ),
    );
    assert.deepEqual(
      [...asked, ...named].filter((name) => !known.has(name)),
      [],
    );
  });

  it('quotes log lines that are written', () => {
    const lines = [...RUNBOOK.matchAll(LOG_LINE)].flatMap(([, line = '']) =>
      line.split('…').map((part) => part.trim()),
    );
    assert.ok(lines.length > 8);
    assert.deepEqual(
      lines.filter((line) => !SOURCES.includes(line)),
      [],
    );
  });

  it('tells of each trouble what it shows, what it means for money, what to do and when it is over', () => {
    for (const [name, section] of sections)
      if (name !== 'first-look')
        for (const label of ['Shows', 'Money', 'Do', 'Over']) assert.ok(section.includes(`**${label}.**`), name);
  });
});
