import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkedDrain, processSettings } from '../../src/cli/checked-start.ts';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { changed } from '../config/document/document.ts';
import { selling } from '../config/sections/acp.ts';

describe('the settings of the process', () => {
  it('have defaults where the environment says nothing', () => {
    assert.deepEqual(processSettings({}), {
      logLevel: 'info',
      drainSeconds: 5,
      drainBudgetSeconds: undefined,
      merchantGraceSeconds: 30,
      hookKey: '1',
      backendPreStop: undefined,
    });
  });

  it('are what the environment says', () => {
    const settings = processSettings({
      LOG_LEVEL: 'debug',
      GATEWAY_DRAIN_SECONDS: '0.5',
      GATEWAY_DRAIN_BUDGET_SECONDS: '75',
      GATEWAY_MERCHANT_GRACE_SECONDS: '0',
      GATEWAY_APP_PRESTOP_SECONDS: '7',
      GATEWAY_HOOK_KEY: 'test-key-of-the-hooks',
    });
    assert.deepEqual(settings, {
      logLevel: 'debug',
      drainSeconds: 0.5,
      drainBudgetSeconds: 75,
      merchantGraceSeconds: 0,
      hookKey: 'test-key-of-the-hooks',
      backendPreStop: { kind: 'sleep', seconds: 7 },
    });
  });

  it('have the call of the backend with its headers', () => {
    const { backendPreStop } = processSettings({
      GATEWAY_APP_PRESTOP: 'https://127.0.0.1:8080/stop?now=1',
      GATEWAY_APP_PRESTOP_HEADERS: 'Host: merchant\nX-Why:  twice: spaced ',
    });
    assert.deepEqual(backendPreStop, {
      kind: 'get',
      url: new URL('https://127.0.0.1:8080/stop?now=1'),
      headers: { Host: 'merchant', 'X-Why': ' twice: spaced ' },
    });
  });

  it('are refused by the name of the variable', () => {
    const refused = (env: Readonly<Record<string, string>>): readonly string[] => {
      try {
        processSettings(env);
        return [];
      } catch (thrown) {
        return thrown instanceof ConfigError ? thrown.problems.map(({ path }) => path) : assert.fail(String(thrown));
      }
    };
    assert.throws(() => processSettings({ LOG_LEVEL: 'loud' }), /LOG_LEVEL: must be one of .*info/);
    for (const drain of ['abc', '-1', '601', ''])
      assert.throws(() => processSettings({ GATEWAY_DRAIN_SECONDS: drain }), /GATEWAY_DRAIN_SECONDS: must be a number/);
    assert.deepEqual(processSettings({ GATEWAY_DRAIN_SECONDS: '600' }).drainSeconds, 600);
    assert.deepEqual(refused({ GATEWAY_DRAIN_BUDGET_SECONDS: '1 day' }), ['GATEWAY_DRAIN_BUDGET_SECONDS']);
    assert.deepEqual(refused({ GATEWAY_MERCHANT_GRACE_SECONDS: '2000001' }), ['GATEWAY_MERCHANT_GRACE_SECONDS']);
    for (const url of ['/stop', 'http://10.0.0.1/stop', 'ftp://127.0.0.1/', 'http://127.0.0.1.example/', ''])
      assert.deepEqual(refused({ GATEWAY_APP_PRESTOP: url }), ['GATEWAY_APP_PRESTOP'], url);
    const call = { GATEWAY_APP_PRESTOP: 'http://127.0.0.1:1/' };
    assert.deepEqual(refused({ ...call, GATEWAY_APP_PRESTOP_HEADERS: 'X' }), ['GATEWAY_APP_PRESTOP_HEADERS']);
    assert.deepEqual(refused({ ...call, GATEWAY_APP_PRESTOP_SECONDS: '1' }), ['GATEWAY_APP_PRESTOP']);
  });
});

describe('the drain of a configuration', () => {
  const config = (timeoutMs: number) =>
    parseConfig(JSON.stringify(changed({ 'resources.report.backend.timeoutMs': timeoutMs })), {});

  it('may take five seconds, and the longest call with its settlement', () => {
    assert.deepEqual(checkedDrain(config(20_000), processSettings({})), { propagationMs: 5_000, finishMs: 80_000 });
  });

  it('is as long as the longest checkout operation needs', () => {
    const acp = parseConfig(JSON.stringify(changed(selling())), {});
    assert.deepEqual(checkedDrain(acp, processSettings({})), { propagationMs: 5_000, finishMs: 85_000 });
  });

  it('is refused where the pod leaves less time, in words that name the annotation', () => {
    const within = (budget: string) => () =>
      checkedDrain(config(10_000), processSettings({ GATEWAY_DRAIN_BUDGET_SECONDS: budget }));
    assert.doesNotThrow(within('75'));
    assert.throws(within('74.9'), /GATEWAY_DRAIN_BUDGET_SECONDS: is 74\.9, .*agent-commerce\.dev\/drain-seconds: "75"/);
  });
});
