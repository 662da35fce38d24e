import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { SampleBackend } from '../../support/sample-backend.ts';
import { startWorld, type World } from '../../support/world.ts';
import { type ExpectedFailure, failed, readExpectedFailures, runSuite, type SuiteRun } from './conformance-suite.ts';
import { startToolBackend, toolGatewayConfig } from './tool-testbed.ts';

/** Scenarios that apply to a server of tools, with the least number of checks that must pass. */
const APPLICABLE: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  '2025-11-25': {
    'server-initialize': 2,
    ping: 2,
    'tools-list': 3,
    'tools-call-simple-text': 2,
    'tools-call-image': 2,
    'tools-call-audio': 2,
    'tools-call-embedded-resource': 2,
    'tools-call-error': 2,
    'json-schema-2020-12': 8,
    'dns-rebinding-protection': 2,
  },
  '2026-07-28': {
    'server-stateless': 21,
    'tools-list': 4,
    'tools-call-simple-text': 2,
    'tools-call-image': 2,
    'tools-call-audio': 2,
    'tools-call-embedded-resource': 2,
    'tools-call-error': 2,
    'json-schema-2020-12': 8,
    'dns-rebinding-protection': 2,
    'http-header-validation': 14,
    'http-custom-header-server-validation': 10,
    caching: 4,
    'server-sse-multiple-streams': 1,
    'sep-2164-resource-not-found': 2,
    'input-required-result-unsupported-methods': 2,
    'input-required-result-validate-input': 3,
    'input-required-result-ignore-extra-params': 1,
    'input-required-result-missing-input-response': 1,
  },
};
/** The check of every message of the gateway with the JSON schema of the revision. */
const WIRE_SCHEMA = 'wire-schema-valid';

let backend: SampleBackend;
let world: World;

before(async () => {
  backend = await startToolBackend();
  world = await startWorld({ overrides: toolGatewayConfig(backend.url) });
});
after(async () => {
  await world?.stop();
  await backend?.stop();
});

for (const [revision, scenarios] of Object.entries(APPLICABLE))
  describe(`the official conformance suite of revision ${revision}`, () => {
    const path = fileURLToPath(import.meta.resolve(`./expected-failures-${revision}.yml`));
    let run: SuiteRun;
    let expected: readonly ExpectedFailure[];

    before(async () => {
      expected = await readExpectedFailures(path);
      run = await runSuite(`${world.gateway.baseUrl}/mcp`, revision, path);
    });

    const isExpected = (scenario: string, id: string): boolean =>
      expected.some((entry) => entry.scenario === scenario && (entry.checkId ?? id) === id);
    const unexpected = (scenario: string): readonly string[] =>
      (run.scenarios.get(scenario) ?? [])
        .filter((check) => failed(check) && !isExpected(scenario, check.id))
        .map(({ id, name, errorMessage = '' }) => `${scenario}:${id} ${name} ${errorMessage}`);

    for (const [scenario, least] of Object.entries(scenarios))
      it(`${scenario}: ${least} checks or more pass, and none fails unexpectedly`, () => {
        const passed = (run.scenarios.get(scenario) ?? []).filter(({ status }) => status === 'SUCCESS');
        assert.deepEqual(unexpected(scenario), []);
        assert.ok(passed.length >= least, `${passed.length} of ${least} checks passed\n${run.output}`);
      });

    it('no message in any scenario breaks the JSON schema of the revision', () => {
      const verdicts = [...run.scenarios].flatMap(([scenario, checks]) =>
        checks.filter(({ id }) => id === WIRE_SCHEMA).map((check) => ({ scenario, ...check })),
      );
      assert.ok(verdicts.length > 0);
      assert.deepEqual(
        verdicts.filter(({ status }) => status !== 'SUCCESS'),
        [],
      );
    });

    it('no other scenario fails, also by the exit code of the suite', () => {
      assert.deepEqual([...run.scenarios.keys()].flatMap(unexpected), []);
      assert.equal(run.exitCode, 0, run.output);
    });

    it('every expected failure has a reason', () => {
      assert.deepEqual(
        expected.filter(({ reason }) => reason === undefined),
        [],
      );
    });

    it('every expected failure still fails', () => {
      const stale = expected.filter(
        ({ scenario, checkId }) =>
          !run.scenarios.get(scenario)?.some((check) => failed(check) && (checkId ?? check.id) === check.id),
      );
      assert.deepEqual(stale, []);
    });
  });
