import { pino } from 'pino';
import { ProblemList } from '../problems/problem.ts';

/** New calls are still served this long after the drain began, seconds, unless GATEWAY_DRAIN_SECONDS says otherwise. */
const DEFAULT_DRAIN_SECONDS = 5;
const MAX_DRAIN_SECONDS = 600;
const LEVELS = [...Object.values(pino.levels.labels), 'silent'];

/** What belongs to the process and not to the merchant: from the environment only. */
interface ProcessSettings {
  readonly logLevel: string;
  readonly drainSeconds: number;
}

/** @throws ConfigError that names the variable and what would be right */
export function processSettings(env: Readonly<Record<string, string | undefined>>): ProcessSettings {
  const problems = new ProblemList();
  const logLevel = env['LOG_LEVEL'] ?? 'info';
  if (!LEVELS.includes(logLevel)) problems.add('LOG_LEVEL', `must be one of ${LEVELS.join(', ')}`);
  const drain = env['GATEWAY_DRAIN_SECONDS'] ?? String(DEFAULT_DRAIN_SECONDS);
  const drainSeconds = /^\d+(\.\d+)?$/.test(drain) ? Number(drain) : Number.NaN;
  if (!(drainSeconds <= MAX_DRAIN_SECONDS))
    problems.add('GATEWAY_DRAIN_SECONDS', `must be a number of seconds from 0 to ${MAX_DRAIN_SECONDS}`);
  problems.throwIfAny();
  return { logLevel, drainSeconds };
}
