/** Everything that a start reads before it opens anything: checked together, for one report. */

import { pino } from 'pino';
import { drainLengthOf } from '../app/open-pod-hooks.ts';
import { openAppProbes } from '../app/open-routes.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type ConfigSource, checkLoaded, loadDocument } from '../config/load.ts';
import { checkAll, ProblemList } from '../problems/problem.ts';
import { readAppProbes } from '../sidecar/app-probe-settings.ts';
import { type BackendPreStop, readHeaderLines, readLoopbackUrl } from '../sidecar/backend-pre-stop.ts';
import { budgetProblem, type DrainLength } from '../sidecar/lifecycle.ts';

/** How long new calls are served after the drain began, unless GATEWAY_DRAIN_SECONDS is set. */
const DEFAULT_DRAIN_SECONDS = 5;
const MAX_DRAIN_SECONDS = 600;
/** The grace period of Kubernetes for a pod that sets none. */
const DEFAULT_GRACE_SECONDS = 30;
/** Some 23 days, which timers can still count. Injection writes no more. */
const MAX_SECONDS = 2_000_000;
const LEVELS = [...Object.values(pino.levels.labels), 'silent'];

type Environment = Readonly<Record<string, string | undefined>>;

export interface ProcessSettings {
  readonly logLevel: string;
  /** How long new calls are still served after the drain began. */
  readonly drainSeconds: number;
  /** Time that the pod leaves for the whole drain; undefined: it does not say. */
  readonly drainBudgetSeconds: number | undefined;
  /** How long the backend's container may take to end. */
  readonly merchantGraceSeconds: number;
  /** The preStop hook that the backend's container had of its own. */
  readonly backendPreStop: BackendPreStop | undefined;
  /** The value that the header of the pod's hooks must have. */
  readonly hookKey: string;
}

/** @throws ConfigError that names the variable and what would be right */
export function processSettings(env: Environment): ProcessSettings {
  const problems = new ProblemList();
  const logLevel = env['LOG_LEVEL'] ?? 'info';
  if (!LEVELS.includes(logLevel)) problems.add('LOG_LEVEL', `must be one of ${LEVELS.join(', ')}`);
  const read = (name: string, atMost: number): number | undefined => seconds(env, name, atMost, problems);
  const settings = {
    logLevel,
    drainSeconds: read('GATEWAY_DRAIN_SECONDS', MAX_DRAIN_SECONDS) ?? DEFAULT_DRAIN_SECONDS,
    drainBudgetSeconds: read('GATEWAY_DRAIN_BUDGET_SECONDS', MAX_SECONDS),
    merchantGraceSeconds: read('GATEWAY_MERCHANT_GRACE_SECONDS', MAX_SECONDS) ?? DEFAULT_GRACE_SECONDS,
    hookKey: hookKey(env, problems),
    backendPreStop: preStop(env, read('GATEWAY_APP_PRESTOP_SECONDS', MAX_SECONDS), problems),
  };
  problems.throwIfAny();
  return settings;
}

/** @throws ConfigError when the pod leaves too little time for the drain of this configuration */
export function checkedDrain(config: GatewayConfig, settings: ProcessSettings): DrainLength {
  const length = drainLengthOf(config, settings.drainSeconds);
  const problem = budgetProblem(length, settings.drainBudgetSeconds);
  const problems = new ProblemList();
  if (problem !== undefined) problems.add('GATEWAY_DRAIN_BUDGET_SECONDS', problem);
  problems.throwIfAny();
  return length;
}

function seconds(env: Environment, name: string, atMost: number, problems: ProblemList): number | undefined {
  const text = env[name];
  if (text === undefined) return undefined;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value <= atMost) return value;
  problems.add(name, `must be a number of seconds from 0 to ${atMost}`);
  return undefined;
}

function hookKey({ GATEWAY_HOOK_KEY: key = '1' }: Environment, problems: ProblemList): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(key))
    problems.add('GATEWAY_HOOK_KEY', 'must be 1 to 128 visible ASCII characters, as the hooks of the pod send them');
  return key;
}

function preStop(env: Environment, slept: number | undefined, problems: ProblemList): BackendPreStop | undefined {
  const { GATEWAY_APP_PRESTOP: text, GATEWAY_APP_PRESTOP_HEADERS: lines = '' } = env;
  if (text === undefined) return slept === undefined ? undefined : { kind: 'sleep', seconds: slept };
  if (env['GATEWAY_APP_PRESTOP_SECONDS'] !== undefined)
    problems.add('GATEWAY_APP_PRESTOP', 'a hook calls or sleeps: GATEWAY_APP_PRESTOP_SECONDS is set as well');
  const url = readLoopbackUrl(text);
  if (url === undefined)
    problems.add('GATEWAY_APP_PRESTOP', 'must be an http or https URL of this pod, as http://127.0.0.1:8080/stop');
  const headers = readHeaderLines(lines);
  if (headers === undefined)
    problems.add('GATEWAY_APP_PRESTOP_HEADERS', 'must have a header in each line, as Name: value');
  return url === undefined || headers === undefined ? undefined : { kind: 'get', url, headers };
}

/**
 * Reads and checks the configuration and the settings of the process.
 * @param also a further check of the configuration
 * @throws ConfigError with every problem of one step
 */
export function checkedStart<Also>(source: ConfigSource, also: (config: GatewayConfig) => Also) {
  const { env } = source;
  const [loaded, settings] = checkAll(
    () => loadDocument(source),
    () => processSettings(env),
    () => readProbes(env),
  );
  const { config } = loaded;
  const [drain, appProbes, found] = checkLoaded(source, () =>
    checkAll(
      () => checkedDrain(config, settings),
      () => openAppProbes(env, config),
      () => also(config),
    ),
  );
  return { loaded, settings, drain, appProbes, also: found };
}

/** Checks the merchant's probes without a look at the sold paths. @throws ConfigError */
function readProbes(env: ConfigSource['env']): void {
  const problems = new ProblemList();
  readAppProbes(env, problems);
  problems.throwIfAny();
}
