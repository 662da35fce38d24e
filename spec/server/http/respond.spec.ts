import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptsPage } from '../../../src/server/http/respond.ts';

const ROWS: readonly (readonly [accept: string | undefined, page: boolean])[] = [
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['text/*', false],
  ['application/json', false],
  ['text/html', true],
  ['TEXT/HTML', true],
  ['text/html;q=0', false],
  ['text/html;q=0.0', false],
  ['text/html; q=0.000', false],
  ['text/html;q=0.001', true],
  ['text/html;q=1', true],
  ['text/html;q=1.001', false],
  ['text/html;q=2', false],
  ['text/html;q=', false],
  ['text/html;q=x', false],
  ['text/html;Q=0', false],
  ['text/html;level=1;q=0', false],
  ['text/html;level="1,2;q=0"', true],
  ['text/html, application/json', false],
  ['application/json;q=0.1, text/html', false],
  ['text/html, application/json;q=0', true],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
  ['text/htmlx', false],
  ['x-text/html', false],
  ['text/plain, text/html', true],
  ['text/plain;a="text/html"', false],
  [',,text/html', true],
  [`${'text/html;q="'.repeat(2_000)}`, false],
];

describe('an answer is a page', () => {
  for (const [accept, page] of ROWS)
    it(`${page ? 'for' : 'not for'} Accept: ${accept?.slice(0, 70)}`, () => {
      assert.equal(acceptsPage({ accept }), page);
    });

  for (const proof of ['payment-signature', 'x-payment'])
    it(`not for a request with ${proof}, whatever it accepts`, () => {
      assert.equal(acceptsPage({ accept: 'text/html', [proof]: '' }), false);
    });
});
