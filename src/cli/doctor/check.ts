/** A check of `acg doctor`, and how all of them run: side by side, each in its time. */

import { inTime } from '../../time/time.ts';

/** Longest time for one check, milliseconds: its requests have shorter deadlines. */
const DEADLINE_MS = 6_000;

export const STATUSES = ['PASS', 'WARN', 'FAIL', 'SKIP'] as const;

/**
 * `FAIL`: the gateway does not start, payments fail, or money can be lost for certain. `WARN`: it
 * serves, and something can be lost or stops soon. `SKIP`: it could not be looked at.
 */
export interface Finding {
  readonly status: (typeof STATUSES)[number];
  readonly message: string;
  /** The action that helps, in the imperative. */
  readonly remedy?: string;
}

/** One thing that is looked at. */
export interface Check {
  readonly name: string;
  /** Checks that must have found something usable before. */
  readonly needs?: readonly string[];
  /** Runs the check; an error becomes a finding. */
  run(): Promise<Finding | readonly Finding[]>;
}

/** Checks that share a connection. */
export interface Part {
  readonly checks: readonly Check[];
  /** Ends the connection after the last check. */
  close?(): unknown;
}

/** A finding with the name of its check. */
export interface NamedFinding extends Finding {
  readonly check: string;
}

export function passed(message: string): Finding {
  return { status: 'PASS', message };
}

export function warned(message: string, remedy: string): Finding {
  return { status: 'WARN', message, remedy };
}

export function failed(message: string, remedy: string): Finding {
  return { status: 'FAIL', message, remedy };
}

export function skipped(message: string): Finding {
  return { status: 'SKIP', message };
}

/**
 * Runs all checks; findings in their order. `left`: gets the names of checks that still run.
 * `deadlineMs`: shorter in tests.
 */
export async function runChecks(
  checks: readonly Check[],
  left: (names: readonly string[]) => void,
  deadlineMs = DEADLINE_MS,
): Promise<readonly NamedFinding[]> {
  const running = new Map<string, Promise<readonly Finding[]>>();
  const open = new Set(checks.map(({ name }) => name));
  left([...open]);
  for (const check of checks) {
    const findings = oneCheck(check, running, deadlineMs);
    running.set(check.name, findings);
    void findings.then(() => {
      open.delete(check.name);
      left([...open]);
    });
  }
  const all = await Promise.all(
    checks.map(async ({ name }) => ((await running.get(name)) ?? []).map((finding) => ({ check: name, ...finding }))),
  );
  return all.flat();
}

/** Never rejects. A check stands behind those that it needs. */
async function oneCheck(
  { needs = [], run }: Check,
  running: ReadonlyMap<string, Promise<readonly Finding[]>>,
  deadlineMs: number,
): Promise<readonly Finding[]> {
  for (const name of needs) {
    const before = (await running.get(name)) ?? [];
    if (before.some(({ status }) => status === 'FAIL' || status === 'SKIP')) return [skipped(`see ${name}`)];
  }
  try {
    const late = () => failed(`no answer within ${deadlineMs / 1_000} s`, 'look at what it names');
    const found = await inTime(Promise.try(run), deadlineMs, late);
    return 'status' in found ? [found] : found;
  } catch (thrown) {
    return [failed(thrown instanceof Error ? thrown.message : String(thrown), 'look at what it names')];
  }
}
