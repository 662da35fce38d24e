import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ended } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';
import type { SampleBackend } from '../../support/sample-backend.ts';
import { startWorld, type World } from '../../support/world.ts';
import { startToolBackend, toolGatewayConfig } from './tool-testbed.ts';

/** One check of the official suite, as its `checks.json` has it. */
interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

/** The result of a run of the suite. */
interface SuiteRun {
  /** 0: exactly the expected checks failed. */
  readonly exitCode: number | null;
  readonly output: string;
  /** Checks by scenario. */
  readonly scenarios: ReadonlyMap<string, readonly Check[]>;
}

/** A revision takes about a second; a suite that hangs must not block the specs. */
const SUITE_TIMEOUT_MS = 60_000;
const SUITE = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js'));
const RESULT_FOLDER = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;

/** Runs every server scenario of a revision against `url`. */
async function runSuite(url: string, revision: string, expectedFailuresPath: string): Promise<SuiteRun> {
  const results = await mkdtemp(join(tmpdir(), 'acg-conformance-'));
  try {
    const options = ['--url', url, '--requirements', revision, '--expected-failures', expectedFailuresPath];
    const child = spawn(process.execPath, [SUITE, 'server', ...options, '--output-dir', results], {
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: SUITE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    leash(child);
    const closed = once(child, 'close');
    const printed: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => printed.push(chunk));
    const { code } = await ended(child);
    await closed;
    const scenarios = await readResults(results);
    return { exitCode: code, output: Buffer.concat(printed).toString(), scenarios };
  } finally {
    await rm(results, { recursive: true, force: true });
  }
}

async function readResults(folder: string): Promise<ReadonlyMap<string, readonly Check[]>> {
  const scenarios = new Map<string, readonly Check[]>();
  for (const entry of await readdir(folder)) {
    const scenario = RESULT_FOLDER.exec(entry)?.[1] ?? entry;
    scenarios.set(scenario, JSON.parse(await readFile(join(folder, entry, 'checks.json'), 'utf8')) as Check[]);
  }
  return scenarios;
}

/** One line of an expected-failures file. */
interface ExpectedFailure {
  readonly scenario: string;
  /** Undefined: the whole scenario. */
  readonly checkId: string | undefined;
  /** The comment behind the entry. */
  readonly reason: string | undefined;
}

const ENTRY = /^ {2}- ([^\s:#]+)(?::([^\s#]+))?(?: +# (.+))?$/;

/** The entries with their comments, which a YAML parser would drop. @throws Error */
async function readExpectedFailures(path: string): Promise<readonly ExpectedFailure[]> {
  const lines = (await readFile(path, 'utf8')).split('\n');
  return lines
    .filter((line) => line !== '' && line !== 'server:' && !line.startsWith('#'))
    .map((line) => {
      const [, scenario, checkId, reason] = ENTRY.exec(line) ?? [];
      if (scenario === undefined) throw new Error(`${path}: not an entry: ${line}`);
      return { scenario, checkId, reason };
    });
}

/** Whether the suite counts a check as failed. */
function failed({ status }: Check): boolean {
  return status === 'FAILURE' || status === 'WARNING';
}

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
