/** `acg inject`: puts the gateway into the pods of manifests, without a cluster. */

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import type { Command } from 'commander';
import { readConfigFile } from '../config/document/parse.ts';
import { componentFiles, type ManifestDocument, ManifestError, readManifests } from '../sidecar/injection/component.ts';
import { OPT_IN_LABEL, OPT_IN_VALUE } from '../sidecar/injection/names.ts';
import { type InjectionOptions, readOptions, USUAL_OPTIONS } from '../sidecar/injection/options.ts';
import type { Pod } from '../sidecar/injection/pod.ts';
import {
  type Injected,
  injectObject,
  objectsIn,
  type PodPaths,
  titleOf,
  type Workload,
  workloadWarnings,
} from '../sidecar/injection/workloads.ts';
import { defineCommand, repeated, UsageError } from './program.ts';

const POD_PATH = /^([A-Za-z][A-Za-z0-9]*)=([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)$/;
/** The first component of an image's name, where it is a registry. */
const REGISTRY = /^(?:localhost|[^/]*[.:][^/]*)\//;
const MANIFEST_FILE = /\.(?:ya?ml|json)$/;

interface InjectedPod {
  readonly workload: Workload;
  readonly pod: Pod;
  /** JSON pointers to the changes of the pod. */
  readonly changed: readonly string[];
}

export function injectCommand(): Command {
  const about = `Writes the manifests with the gateway in every pod labelled ${OPT_IN_LABEL}: ${OPT_IN_VALUE}. With --check it writes
nothing and ends with 1 when one of these pods is not as injection makes it; with --component it writes a kustomize component
that makes the same of these workloads.`;
  return defineCommand('inject', about, 'kubectl kustomize . | acg inject -f - | kubectl apply -f -')
    .option('-f, --file <path>', 'a file, a folder or - for stdin; may be repeated', repeated)
    .option(
      '--options <file>',
      'image, ConfigMap, Secret, ports and resources, as for acg injector; else the usual ones',
    )
    .option(
      '--pod-path <kind=path>',
      'where a kind of your own keeps its pod, such as Rollout=spec.template; may be repeated',
      readPodPath,
    )
    .option('--check', 'compare instead')
    .option('--component <folder>', 'write a kustomize component into it instead')
    .action(async (args) => {
      process.exitCode = await inject(args);
    });
}

interface InjectArgs {
  readonly file?: readonly string[];
  readonly options?: string;
  readonly podPath?: PodPaths;
  readonly check?: boolean;
  readonly component?: string;
}

/** @throws UsageError */
async function inject(args: InjectArgs): Promise<number> {
  const { file: files = [], options: path, podPath: podPaths = {}, check = false, component } = args;
  if (files.length === 0) throw new UsageError('inject needs -f FILE, -f DIRECTORY or -f - for stdin');
  if (check && component !== undefined) throw new UsageError('--check writes nothing: leave --component out');
  const options = path === undefined ? USUAL_OPTIONS : readOptions(readConfigFile(path));
  const documents = (await Promise.all(files.map(readFrom))).flat();
  const results = documents.map(({ object }) => injectObject(object, options, podPaths));
  const injected = report(results, options);
  if (injected === undefined) return 1;
  if (check)
    return checked(
      injected,
      results.flatMap(({ doubts }) => doubts),
    );
  if (component !== undefined) return writeComponent(component, injected);
  process.stdout.write(documents.map((document, index) => document.write(results[index]?.object)).join('---\n'));
  return 0;
}

/** @throws UsageError */
function readPodPath(text: string, all: PodPaths = {}): PodPaths {
  const [, kind, path] = POD_PATH.exec(text) ?? [];
  if (kind === undefined || path === undefined)
    throw new UsageError(
      `--pod-path ${JSON.stringify(text)} must be a kind and the way to its pod: Rollout=spec.template`,
    );
  return { ...all, [kind]: path.split('.') };
}

/** The documents of a file, of the manifests of a directory, or of stdin. */
async function readFrom(source: string): Promise<readonly ManifestDocument[]> {
  if (source === '-') return readDocuments('stdin', await textOf(process.stdin));
  if (!statSync(source).isDirectory()) return readDocuments(source, readFileSync(source, 'utf8'));
  return readdirSync(source)
    .filter((name) => MANIFEST_FILE.test(name))
    .sort()
    .flatMap((name) => readDocuments(join(source, name), readFileSync(join(source, name), 'utf8')));
}

function readDocuments(name: string, text: string): readonly ManifestDocument[] {
  try {
    return readManifests(text);
  } catch (thrown) {
    throw thrown instanceof ManifestError ? new Error(`${name}: ${thrown.message}`) : thrown;
  }
}

/** Prints warnings and refusals on stderr; undefined when a pod was refused. */
function report(results: readonly Injected[], options: InjectionOptions): readonly InjectedPod[] | undefined {
  const say = (kind: string, text: string): unknown => process.stderr.write(`${kind}: ${text}\n`);
  const objects = results.flatMap(({ object }) => objectsIn(object));
  const doubts = results.flatMap((result) => result.doubts);
  for (const doubt of doubts) say('warning', doubt);
  let refused = false;
  const injected = results.flatMap(({ workloads }) =>
    workloads.flatMap(({ injection, ...workload }): readonly InjectedPod[] => {
      const title = titleOf(workload);
      if (injection.kind === 'refused') {
        say('refused', `${title}: ${injection.message}`);
        refused = true;
        return [];
      }
      const beside = workloadWarnings(workload, injection.pod, objects, options);
      for (const warning of [...injection.warnings, ...beside]) say('warning', `${title}: ${warning}`);
      return [{ workload, pod: injection.pod, changed: injection.patch.map(({ path }) => path) }];
    }),
  );
  if (!refused && injected.length > 0 && !REGISTRY.test(options.image))
    say(
      'warning',
      `image ${options.image} names no registry: a node asks its own default one, usually Docker Hub, where the name may belong to someone else; write image: registry.example.com/agent-commerce-gateway@sha256:… in the file of --options`,
    );
  if (!refused && injected.length === 0 && doubts.length === 0)
    say('warning', `no pod is labelled ${OPT_IN_LABEL}: ${OPT_IN_VALUE}; nothing was injected`);
  return refused ? undefined : injected;
}

/** `doubts`: labels that look like the opt-in and are none: their pods run without a gateway. */
function checked(injected: readonly InjectedPod[], doubts: readonly string[]): number {
  const differing = injected.filter(({ changed }) => changed.length > 0);
  for (const { workload, changed } of differing)
    process.stderr.write(
      `not injected: ${titleOf(workload)} differs from what injection makes in ${changed.join(', ')}\n`,
    );
  if (differing.length > 0 || doubts.length > 0 || injected.length === 0) return 1;
  process.stdout.write(`as injection makes them: ${injected.map(({ workload }) => titleOf(workload)).join(', ')}\n`);
  return 0;
}

function writeComponent(directory: string, injected: readonly InjectedPod[]): number {
  const files = componentFiles(injected.filter(({ changed }) => changed.length > 0));
  mkdirSync(directory, { recursive: true });
  for (const { name, text } of files) writeFileSync(join(directory, name), text);
  process.stdout.write(`written: ${files.map(({ name }) => join(directory, name)).join(', ')}\n`);
  return 0;
}
