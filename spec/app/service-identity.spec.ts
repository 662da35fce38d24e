import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isOfService } from '../../src/app/store-keeping.ts';

describe('a purchase of this service', () => {
  for (const [publicBaseUrl, url, expected] of [
    ['https://shop.example', 'https://shop.example/api/resources/a/invoke', true],
    ['https://shop.example', 'https://old.example/api/resources/a/invoke', true],
    ['https://shop.example', 'https://shop.example.net/api/resources/a/invoke', false],
    ['https://shop.example', 'http://127.0.0.1:8402/api/resources/a/invoke', false],
    ['http://127.0.0.1:8402', 'http://localhost:9402/api/resources/a/invoke', true],
  ] as const)
    it(`${expected ? 'may' : 'must not'} name ${url} where the service is ${publicBaseUrl}`, () =>
      assert.equal(isOfService({ publicBaseUrl, formerBaseUrls: ['https://old.example'] }, url), expected));
});
