import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { indexPage } from '../../src/app/mount-routes.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { indexDocument, introductionOf, llmsDocument, x402Document } from '../../src/resources/published.ts';
import type { StaticDocument } from '../../src/resources/static-document.ts';
import { type Changes, load } from '../config/document/document.ts';

const BASE = 'https://api.shop.example';

function made(changes: Changes = {}) {
  const config = load(changes);
  const introduction = introductionOf(config, compileCatalogue(config).listed);
  return {
    llms: textOf(llmsDocument(introduction)),
    x402: JSON.parse(textOf(x402Document(introduction))) as unknown,
    index: JSON.parse(textOf(indexDocument(config))) as unknown,
    page: indexPage(introduction),
  };
}

function textOf({ bytes }: StaticDocument): string {
  return Buffer.from(bytes).toString();
}

describe('the documents that introduce what is sold', () => {
  it('tell a model how to call, what there is, its price and where to read on', () => {
    const { llms } = made({ 'protocols.mcp.enabled': true });
    assert.match(llms, /^# Shop\n\n> 1 operations /);
    assert.ok(llms.includes(`- [Report](${BASE}/api/resources/report/invoke): Report. Costs 0.01 USDC per call.\n`));
    for (const path of ['/api/resources', '/.well-known/agent-commerce', '/mcp', '/openapi.json'])
      assert.ok(llms.includes(`(${BASE}${path})\n`), path);
  });

  it('tell a catalogue what can be asked as it stands there, in place where it is sold nowhere else', () => {
    assert.deepEqual(made().x402, { version: 1, resources: [`${BASE}/api/resources/report/invoke`] });
    const inPlace: Changes = { 'resources.report.expose': ['origin'] };
    assert.deepEqual(made(inPlace).x402, { version: 1, resources: [] });
    const plain = { ...inPlace, 'resources.report.backend.path': '/report' };
    assert.deepEqual(made(plain).x402, { version: 1, resources: [`${BASE}/report`] });
  });

  it('tell a program where the others are', () => {
    const { index } = made({ 'protocols.a2a.enabled': true, publish: ['index', 'llms'] });
    assert.deepEqual(index, {
      name: 'Shop',
      resources: `${BASE}/api/resources`,
      discovery: `${BASE}/.well-known/agent-commerce`,
      a2a: `${BASE}/a2a`,
      llms: `${BASE}/llms.txt`,
    });
  });

  it('tell a person the same, in a page without script', () => {
    const { page } = made();
    assert.match(page, /^<!doctype html><html lang="en">/);
    assert.ok(page.includes('<dt>Report</dt>') && page.includes(`href="${BASE}/openapi.json"`));
    assert.doesNotMatch(page, /<script/i);
  });

  it('keep texts of the configuration from being markup', () => {
    const name = 'A [b](c)\n# <script>';
    const { llms, page } = made({ 'merchant.name': name, 'resources.report.name': name });
    assert.match(llms, /^# A \\\[b\\\]\(c\) # <script>\n/);
    assert.ok(llms.includes('- [A \\[b\\](c) # <script>]('));
    assert.doesNotMatch(page, /<script/);
  });
});
