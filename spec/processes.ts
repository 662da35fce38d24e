/** Divides the specs among processes, so that the slow ones run side by side. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, matchesGlob, relative, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** The files that load the specs of one process. Each run has its own: two may go on at a time. */
const LOADERS = join(ROOT, '.cache/specs', String(process.pid));
/** No more specs share one process: the run ends with the last one. */
const MOST_TOGETHER = 15;

/** Folders below this level share the processes of the one that they are in. */
const DEPTH = 3;

/**
 * Specs with a process of their own: what measures time or memory, and what alone takes as long as
 * a folder of others.
 */
const ALONE = [
  'verification/bench/**',
  'verification/chaos/*.spec.ts',
  'verification/chaos/{sim,steps}/**',
  'verification/checkouts/**',
  'verification/passthrough/**',
  'verification/pods/**',
  'verification/refunds/**',
  'spec/deploy/{ascii,bundle,dockerfile,monitoring,package,sbom,sidecar-component,validators}.spec.ts',
  'spec/documents/**',
  'spec/tools/dev/dev.spec.ts',
  'spec/world/**',
  'verification/mandates/{flips,mutants}.spec.ts',
];

/**
 * Folders whose specs take long, with those below them: they come before the others, so that the
 * last to end is a short one.
 */
const LONG = [
  'spec/e2e',
  'spec/store',
  'verification/attack',
  'verification/chaos/checkout',
  'verification/import',
  'spec/cli',
  'spec/deploy',
  'spec/how-to-add',
  'spec/operator/console',
  'spec/tools',
  'spec/payments',
  'spec/resources',
  'spec/routes',
];

/** Some specs of one folder. */
interface Room {
  readonly name: string;
  readonly specs: readonly string[];
}

/** A file that the runner starts as a process of its own, and the specs whose tests run in it. */
export interface SpecProcess {
  readonly file: string;
  readonly specs: readonly string[];
}

/**
 * The processes of a test run. Specs of one folder share one, because the start of a process costs
 * more than most specs do; each stays a suite of its own there, so that hooks reach no other spec.
 * Processes that keep the machine busy alternate with those that mostly wait, and short ones come
 * last.
 * @param specs below the project's folder, for example `spec/json/strict.spec.ts`
 */
export function processesOf(specs: readonly string[]): SpecProcess[] {
  const alone = specs.filter((spec) => ALONE.some((glob) => matchesGlob(spec, glob)));
  const folders = Map.groupBy(
    specs.filter((spec) => !alone.includes(spec)),
    (spec) => dirname(spec).split('/').slice(0, DEPTH).join('/'),
  );
  mkdirSync(LOADERS, { recursive: true });
  process.once('exit', () => rmSync(LOADERS, { recursive: true, force: true }));
  const loaders = (long: boolean): SpecProcess[] =>
    [...folders]
      .filter(([folder]) => isLong(folder) === long)
      .flatMap(([folder, inside]) => roomsOf(folder, inside))
      .map(loaderOf);
  const own = alone.map((spec) => loaderOf({ name: spec.replaceAll('/', '-'), specs: [spec] }));
  return [...alternately(own, loaders(true)), ...loaders(false)];
}

function isLong(folder: string): boolean {
  return LONG.some((long) => folder === long || folder.startsWith(`${long}/`));
}

function alternately<Item>(some: readonly Item[], others: readonly Item[]): Item[] {
  const length = Math.max(some.length, others.length);
  return Array.from({ length }, (_, at) => [...some.slice(at, at + 1), ...others.slice(at, at + 1)]).flat();
}

/** As many as are needed, of much the same size. */
function roomsOf(folder: string, specs: readonly string[]): Room[] {
  const number = Math.ceil(specs.length / MOST_TOGETHER);
  return Array.from({ length: number }, (_, at) => ({
    name: `${folder.replaceAll('/', '-')}-${at + 1}`,
    specs: specs.filter((_spec, index) => index % number === at),
  }));
}

function loaderOf({ name, specs }: Room): SpecProcess {
  const path = (file: string) => JSON.stringify(relative(LOADERS, resolve(ROOT, file)));
  const suites = specs.map((spec) => `inTurn(${JSON.stringify(spec)}, () => import(${path(spec)}));\n`);
  const loader = join(LOADERS, `${name}.mjs`);
  writeFileSync(loader, `import { inTurn } from ${path('spec/in-turn.ts')};\n\n${suites.join('')}`);
  return { file: loader, specs };
}
