import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Changes, load, MAINNET, problems } from './document/document.ts';

const X = 'payments.x402';
const R = 'resources.report';
const long = (length: number): string => 'x'.repeat(length);

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
    ['localhost', { 'backend.baseUrl': 'http://localhost:3000' }],
    ['any loopback address', { 'backend.baseUrl': 'http://127.255.255.254' }],
    ['redis with replicas', { storage: { redis: { url: 'redis://x' }, replicas: 3 } }],
    ['a free gateway without payments', { payments: undefined, [`${R}.pricing`]: { type: 'free' } }],
    ['a newline in a description', { [`${R}.description`]: 'two\nlines\n' }],
    ['disabled adapters beside one that is enabled', { [`${R}.expose`]: ['mcp', 'http', 'a2a'] }],
  ];
  for (const [title, changes] of ACCEPTED) it(title, () => assert.deepEqual(problems(changes), []));
});

describe('every numeric limit', () => {
  const LIMITS: readonly (readonly [path: string, low: number, high: number])[] = [
    ['server.port', 0, 65535],
    ['server.trustProxy', 0, 8],
    ['storage.eventsMaxLength', 100, 1_000_000],
    ['storage.receiptsMaxLength', 100, 1_000_000],
    ['storage.receiptsMaxAgeDays', 1, 36_500],
    ['limits.maxInFlight', 1, 100_000],
    ['limits.maxStreams', 1, 1_024],
    ['limits.maxPassthrough', 1, 10_000],
    ['limits.maxUpgrades', 1, 10_000],
    ['limits.maxBufferedBytes', 1_048_576, 1_073_741_824],
    ['limits.unpaidWork.perResource', 1, 100_000],
    ['limits.unpaidWork.perNetwork', 1, 100_000],
    ['limits.unpaidWork.all', 1, 100_000],
    ['limits.unpaidWork.windowSeconds', 1, 86_400],
    ['limits.rate.perSecond', 1, 100_000],
    ['limits.rate.burst', 1, 1_000_000],
    [`${X}.maxTimeoutSeconds`, 10, 3_600],
    [`${R}.backend.timeoutMs`, 1, 120_000],
    [`${R}.backend.maxResponseBytes`, 1, 104_857_600],
  ];
  for (const [path, low, high] of LIMITS)
    it(`${path} is ${low} to ${high}, and no further`, () => {
      for (const value of [low, high]) assert.deepEqual(problems({ [path]: value }), []);
      for (const value of [low - 1, high + 1, low + 0.5]) {
        const [problem] = problems({ [path]: value });
        assert.equal(problem?.path, path);
        assert.match(problem.message, /must be .*\(\d+ to \d+\)/);
      }
    });
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
  it('text limits hold on both sides', () => {
    for (const [path, length] of [
      [`${R}.description`, 2_000],
      [`${R}.name`, 200],
      ['merchant.id', 64],
      ['server.adminToken', 512],
    ] as const) {
      assert.deepEqual(problems({ [path]: long(length) }), []);
      assert.equal(problems({ [path]: long(length + 1) })[0]?.path, path);
    }
  });
});

describe('an adapter that is not enabled', () => {
  it('is no adapter of a resource', () =>
    assert.deepEqual(load({ [`${R}.expose`]: ['a2a', 'http'] }).resources[0]?.exposedVia, ['http']));
});
