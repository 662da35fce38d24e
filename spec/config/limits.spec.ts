import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Changes, load, MAINNET, problems } from './document/document.ts';

const X = 'payments.x402';
const R = 'resources.report';

describe('what start-up accepts', () => {
  const ACCEPTED: readonly (readonly [string, Changes])[] = [
    ['the smallest paid configuration', {}],
    ['a complete mainnet configuration', MAINNET],
    ['a price with spare zeros', { [`${R}.pricing.amount`]: '0.010000000' }],
    ['a payee in lower case', { [`${X}.payTo`]: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' }],
    ['the declared currency', { [`${X}.currency`]: 'usd', [`${R}.pricing.currency`]: 'usd' }],
    [
      'a backend outside the pod when allowed',
      { 'backend.baseUrl': 'http://10.0.0.1', 'backend.allowNonLoopback': true },
    ],
    ['the other loopback spellings', { 'backend.baseUrl': 'http://[::1]:3000/base/' }],
    ...['localhost:3000', '127.255.255.254', '2130706433', '0x7f.1', 'LOCALHOST.', '[0:0:0:0:0:0:0:1]'].map(
      (host) => [`the backend at ${host}`, { 'backend.baseUrl': `http://${host}` }] as const,
    ),
    ['redis with replicas', { storage: { redis: { url: 'redis://x' }, replicas: 3 } }],
    ['a free gateway without payments', { payments: undefined, [`${R}.pricing`]: { type: 'free' } }],
    ['a newline in a description', { [`${R}.description`]: 'two\nlines\n' }],
    ['disabled adapters beside one that is enabled', { [`${R}.expose`]: ['mcp', 'http', 'a2a'] }],
  ];
  for (const [title, changes] of ACCEPTED) it(title, () => assert.deepEqual(problems(changes), []));
});

describe('limits.rate', () => {
  it('the rate limit is off, and 100 a second with a burst of two seconds when it is switched on', () => {
    for (const [rate, expected] of [
      [undefined, undefined],
      [{}, { perSecond: 100, burst: 200 }],
      [{ by: 'ip' }, { perSecond: 100, burst: 200 }],
      [{ perSecond: 5 }, { perSecond: 5, burst: 10 }],
      [{ burst: 7 }, { perSecond: 100, burst: 7 }],
      [
        { perSecond: 5, burst: 1, by: 'ip' },
        { perSecond: 5, burst: 1 },
      ],
    ] as const)
      assert.deepEqual(load({ 'limits.rate': rate }).limits.rate, expected);
    for (const rate of [{ by: 'token' }, { perMinute: 1 }])
      assert.equal(problems({ 'limits.rate': rate }).length, 1, JSON.stringify(rate));
  });
  it('a rate limit that is no mapping is refused with how to switch it on and off', () => {
    for (const rate of [true, false, null, 5]) {
      const [problem, ...others] = problems({ 'limits.rate': rate });
      assert.match(
        problem?.message ?? '',
        /^must be a mapping .*; \{\} switches it on, leave it out for off(?:; it has no value)?$/,
      );
      assert.deepEqual(others, []);
    }
  });
});

describe('an adapter that is not enabled', () => {
  it('is no adapter of a resource', () =>
    assert.deepEqual(load({ [`${R}.expose`]: ['a2a', 'http'] }).resources[0]?.exposedVia, ['http']));
});
