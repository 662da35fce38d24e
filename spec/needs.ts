/** What a spec needs beside the packages, read from its imports. */

import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * What a spec needs beside the packages: a program that has to be fetched, or processes of its own,
 * which take seconds.
 */
export type Need = 'redis' | 'browser' | 'kubectl' | 'processes';

/** Modules whose import shows a need. Names of packages and of Node stand as they are imported. */
const NEEDED_BY: readonly (readonly [module: RegExp, need: Need])[] = [
  [/^spec\/support\/redis[a-z-]*\.ts$/, 'redis'],
  [/^playwright-core$/, 'browser'],
  [/^spec\/deploy\/kubectl\.ts$/, 'kubectl'],
  [/^node:(?:child_process|worker_threads)$/, 'processes'],
];

/** Everything from these folders may run what `make` runs. */
const NEEDS_ALL = /^(?:spec\/(?:deploy|world|e2e)|verification)\//;
const ALL: ReadonlySet<Need> = new Set(['redis', 'browser', 'kubectl', 'processes']);

/** Types are erased before a module is loaded. */
const TYPES = /^import type [^;]*;/gm;
/** Imports, and modules that are named to be loaded or started beside the one that names them. */
const NAMED = /(?:from\s+|import\(\s*|import\s+|new URL\(\s*|resolve\(\s*|dirname,\s*)'([^']+)'/g;

/**
 * What these specs need, by the modules that they reach. Paths are relative to the folder of the
 * project.
 */
export function needsOf(specs: readonly string[]): ReadonlyMap<string, ReadonlySet<Need>> {
  const modules = new Map<string, readonly string[]>();
  const named = (file: string): readonly string[] => {
    const known = modules.get(file);
    if (known !== undefined) return known;
    const found = [...readFileSync(file, 'utf8').replace(TYPES, '').matchAll(NAMED)].map(([, name = '']) =>
      name.startsWith('.') ? path.join(path.dirname(file), name) : name,
    );
    modules.set(file, found);
    return found;
  };
  const sources = new Set(globSync('{src,tools,spec,verification,deploy}/**/*.ts'));
  const needs = (spec: string): ReadonlySet<Need> => {
    if (NEEDS_ALL.test(spec)) return ALL;
    const reached = new Set([spec]);
    // A set grows while it is walked.
    for (const file of reached) if (sources.has(file)) for (const name of named(file)) reached.add(name);
    return new Set(
      NEEDED_BY.filter(([module]) => [...reached].some((name) => module.test(name))).map(([, need]) => need),
    );
  };
  return new Map(specs.map((spec) => [spec, needs(spec)]));
}
