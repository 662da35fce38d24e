import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ended } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';

/** One check of the official suite, as its `checks.json` has it. */
export interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

/** The result of a run of the suite. */
export interface SuiteRun {
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
export async function runSuite(url: string, revision: string, expectedFailuresPath: string): Promise<SuiteRun> {
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
export interface ExpectedFailure {
  readonly scenario: string;
  /** Undefined: the whole scenario. */
  readonly checkId: string | undefined;
  /** The comment behind the entry. */
  readonly reason: string | undefined;
}

const ENTRY = /^ {2}- ([^\s:#]+)(?::([^\s#]+))?(?: +# (.+))?$/;

/** The entries with their comments, which a YAML parser would drop. @throws Error */
export async function readExpectedFailures(path: string): Promise<readonly ExpectedFailure[]> {
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
export function failed({ status }: Check): boolean {
  return status === 'FAILURE' || status === 'WARNING';
}
