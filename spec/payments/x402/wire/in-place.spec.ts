import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { challengeFor } from '../../../../src/payments/x402/wire/challenge.ts';
import { inPlaceUrl, inPlaceUrls } from '../../../../src/payments/x402/wire/in-place.ts';
import { type PricedResource, USUAL_ROOM } from '../../../../src/payments/x402/wire/payment-required.ts';
import { PRICE_UNITS, RESOURCE_URL, termsFor } from '../signing.ts';

const BASE = 'https://shop.example';
const report: PricedResource = {
  id: 'report',
  name: 'Report',
  description: 'Prices of one city — täglich',
  mimeType: 'application/json',
  pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD', units: PRICE_UNITS },
};
const TOKEN = 'T0-_'.repeat(18);
const REFUSAL = { code: 'PAYMENT_INVALID', reason: 'r'.repeat(64), message: 'no', retryable: false } as const;
const facts = (url: string | undefined) => ({ requestId: 'req_1', expiresAt: 'later', token: TOKEN, url });

describe('the URL of a challenge in place', () => {
  for (const [path, url] of [
    ['/reports/Berlin', '/reports/Berlin'],
    ['/reports/z%c3%bcrich', '/reports/z%C3%BCrich'],
    ['/reports/%42erlin%7E', '/reports/Berlin~'],
    ['/reports/S%C3%A3o%20Paulo', '/reports/S%C3%A3o%20Paulo'],
    ['/reports/a,b;c', '/reports/a,b;c'],
    ['/reports/"<x>"', '/reports/%22%3Cx%3E%22'],
  ] as const)
    it(`of ${path} ends with ${url}`, () => {
      assert.equal(inPlaceUrl(BASE, path), BASE + url);
    });

  it('has at most 1,024 bytes', () => {
    const room = 1_024 - BASE.length - 1;
    assert.equal(inPlaceUrl(BASE, `/${'x'.repeat(room)}`)?.length, 1_024);
    assert.equal(inPlaceUrl(BASE, `/${'x'.repeat(room + 1)}`), undefined);
  });

  it('is one of its resource whatever its parameters hold, and of no other', () => {
    const urls = inPlaceUrls(`${BASE}/reports/{city}/of/{year}`);
    for (const path of ['/reports/Berlin/of/2026', '/reports/%22%3C/of/~', '/reports//of/'])
      assert.ok(urls.test(inPlaceUrl(BASE, path) ?? ''), path);
    for (const url of [`${BASE}/reports/Berlin`, `${BASE}/reports/a/b/of/c`, 'https://else.example/reports/a/of/b'])
      assert.ok(!urls.test(url), url);
  });

  it('is compared with the normal form of a template', () => {
    assert.ok(inPlaceUrls(`${BASE}/%72%c3%a9ports/{city}`).test(inPlaceUrl(BASE, '/%72%c3%a9ports/x') ?? ''));
  });
});

describe('a challenge in place', () => {
  const template = challengeFor(report, termsFor(), BASE);

  it('differs from the one of the invoke URL in its URL alone, in every form', () => {
    const url = `${BASE}/reports/Berlin`;
    const there = template.fresh(facts(url));
    const here = template.fresh(facts(undefined));
    const moved = (text: string) => JSON.parse(text.replace(JSON.stringify(RESOURCE_URL), JSON.stringify(url)));
    assert.deepEqual(JSON.parse(there.document), moved(here.document));
    assert.deepEqual(JSON.parse(there.body), moved(here.body));
    assert.deepEqual(decodePaymentRequiredHeader(there.header), moved(here.document));
    assert.equal(JSON.parse(template.refused(facts(url), REFUSAL).document).resource.url, url);
    assert.equal(JSON.parse(template.fresh(facts(undefined)).document).resource.url, RESOURCE_URL);
  });

  it('keeps its header within its room by leaving the description out, and only then', () => {
    const wordy = challengeFor({ ...report, description: 'x'.repeat(600) }, termsFor(), BASE);
    const described = (length: number): boolean => {
      const url = `${BASE}/${'x'.repeat(length - BASE.length - 1)}`;
      const { header, document } = wordy.refused(facts(url), REFUSAL);
      assert.ok(header.length <= USUAL_ROOM.plain, `${header.length}`);
      assert.equal(JSON.parse(document).resource.url, url);
      return JSON.parse(document).resource.description !== undefined;
    };
    assert.deepEqual([100, 1_024].map(described), [true, false]);
  });
});
