/** Prepares an input: strips reserved members, validates, builds the backend request. */

import type { InputProblem } from '../errors.ts';
import type { Json, JsonObject } from '../json/types.ts';
import { buildRequest } from './backend-request.ts';
import { inputProblems } from './input-problems.ts';
import { withoutOmitted } from './nullable.ts';
import { MatchBudgetError, withMatchBudget } from './patterns/budget.ts';
import type { Resource } from './resource.ts';
import type { Validators } from './schemas/ajv.ts';
import { MAX_MATCHED_LENGTH } from './schemas/closed-objects.ts';
import { MatchLengthError } from './schemas/matching.ts';
import { RESERVED_NAMES } from './schemas/reserved-members.ts';
import type { ResourceConfig } from './settings.ts';
import type { PathTemplate } from './url-template.ts';

/** JSON values in an input above which only its first problem is reported, which is cheap. */
const MAX_REPORTED_VALUES = 1_000;

interface Sending {
  readonly template: PathTemplate;
  /** Path parameters whose values may hold separators. */
  readonly separated: ReadonlySet<string>;
  /** Members whose null means that they are not given. */
  readonly omitted: ReadonlySet<string>;
}

export function prepareInput(
  validators: Validators,
  backend: ResourceConfig['backend'],
  { template, separated, omitted }: Sending,
): Resource['prepare'] {
  return (received, raw) => {
    const input = withoutReserved(received);
    const problems = problemsOf(validators, input);
    if (problems.length > 0) return { ok: false, problems };
    // What is bought stays as it came: the buyer sends it again to collect.
    const sent = withoutOmitted(input, omitted);
    const built = buildRequest(backend, template, sent, sent === received ? raw : undefined, separated);
    return built.ok ? { ok: true, request: built.request, input } : { ok: false, problems: [built.problem] };
  };
}

/** An input as it is bought. The same object when there is nothing to strip. */
export function withoutReserved(input: JsonObject): JsonObject {
  const entries = Object.entries(input).filter(([name]) => !RESERVED_NAMES.has(name));
  return entries.length === Object.keys(input).length ? input : Object.fromEntries(entries);
}

function problemsOf(validators: Validators, input: JsonObject): readonly InputProblem[] {
  try {
    return withMatchBudget(() => findProblems(validators, input));
  } catch (error) {
    const message = reasonUntried(error);
    if (message === undefined) throw error;
    return [{ path: '$', message, keyword: 'maxLength' }];
  }
}

function findProblems({ first, all }: Validators, input: JsonObject): readonly InputProblem[] {
  const stopping = first();
  if (stopping(input)) return [];
  if (isLarge(input)) return inputProblems(stopping.errors ?? [], input);
  try {
    const reporting = all();
    reporting(input);
    return inputProblems(reporting.errors ?? [], input);
  } catch (error) {
    // The full report costs more than the verdict, and may exceed the budget.
    if (reasonUntried(error) === undefined) throw error;
    return inputProblems(stopping.errors ?? [], input);
  }
}

/** Why a pattern or format was not tried; undefined for any other error. */
function reasonUntried(error: unknown): string | undefined {
  if (error instanceof MatchLengthError)
    return `has a text of more than ${MAX_MATCHED_LENGTH} characters where a pattern or format applies`;
  if (error instanceof MatchBudgetError)
    return 'has more text under patterns and formats than one input may have: send shorter or fewer texts';
  return undefined;
}

function isLarge(input: JsonObject): boolean {
  const waiting: Json[] = [input];
  for (let seen = 0; seen < MAX_REPORTED_VALUES; seen += 1) {
    const value = waiting.pop();
    if (value === undefined) return false;
    if (value !== null && typeof value === 'object') {
      const inner: readonly Json[] = Array.isArray(value) ? value : Object.values(value);
      if (inner.length > MAX_REPORTED_VALUES) return true;
      waiting.push(...inner);
    }
  }
  return true;
}
