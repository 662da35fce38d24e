/**
 * The kustomize component that injects as `injectPod` does. kustomize cannot compute, so the
 * component holds the result. Before it changes a workload, it tests that this is still the one for
 * which the component was made.
 */

import { isDeepStrictEqual } from 'node:util';
import { Document, isScalar, parseAllDocuments, type ScalarTag, type SchemaOptions, visit } from 'yaml';
import { pointer } from './inject-pod.ts';
import { DEFAULT_CONTAINER, KNOWN_ANNOTATIONS, MESH_EXCLUSIONS } from './names.ts';
import { findMerchant, type Pod, type PodMetadata } from './pod.ts';
import { type Manifest, titleOf, type Workload } from './workloads.ts';

/** One object of a stream, and the function that writes it back. */
export interface ManifestDocument {
  readonly object: unknown;
  /** The text of this document with another object in it. */
  readonly write: (object: unknown) => string;
}

/** The text is no YAML and no JSON; the message says where. */
export class ManifestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ManifestError';
  }
}

/** Integers of YAML 1.1, which kubectl reads as numbers: a `defaultMode: 0444` is 292. */
const INTEGERS = [
  { written: /^[-+]?0[0-7_]+$/, base: 8 },
  { written: /^[-+]?0b[01_]+$/, base: 2 },
  { written: /^[-+]?[1-9][0-9]*_[0-9_]*$/, base: 10 },
];
const INTEGER_TAGS: readonly ScalarTag[] = INTEGERS.map(({ written, base }) => ({
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: written,
  resolve: (text) => Number.parseInt(text.replaceAll('_', '').replace('0b', ''), base),
}));
const READING: SchemaOptions = { customTags: (tags) => [...INTEGER_TAGS, ...tags], merge: true };

/**
 * Texts that some reader of YAML takes for a number, a date, a truth value or nothing when they
 * stand plain, or whose leading space it takes for indentation when they stand in a block.
 */
const AMBIGUOUS = /^(?:[-+.\d~<=\s].*|y|n|yes|no|on|off|true|false|null)$/is;

/** @throws ManifestError */
export function readManifests(text: string): readonly ManifestDocument[] {
  const json = parseJson(text);
  if (json !== undefined) return [{ object: json.value, write: (object) => `${JSON.stringify(object, null, 2)}\n` }];
  const documents = parseAllDocuments(text, READING);
  return [...documents].flatMap((document, index) => {
    const [error] = document.errors;
    if (error !== undefined) throw new ManifestError(`document ${index + 1}: ${error.message.split('\n')[0]}`);
    const original = objectOf(document, index);
    if (original === null) return [];
    return [
      {
        object: original,
        // An unchanged document keeps its comments and its style.
        write: (object) =>
          object === original ? document.toString({ lineWidth: 0 }).replace(/^---\n/, '') : writeYaml(object),
      },
    ];
  });
}

function objectOf(document: { toJS(): unknown }, index: number): unknown {
  try {
    return document.toJS();
  } catch (thrown) {
    throw new ManifestError(`document ${index + 1}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

/** Undefined: the text is not JSON. */
function parseJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The object in YAML that every reader understands alike. */
export function writeYaml(object: unknown): string {
  const document = new Document(object, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_key, node) {
      if (isScalar(node) && typeof node.value === 'string' && AMBIGUOUS.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** One operation of RFC 6902 as kustomize runs it: a `test` for null passes where nothing is. */
interface Operation {
  readonly op: 'test' | 'add';
  readonly path: string;
  readonly value: unknown;
}

/** Annotations on which the result depends. */
const READ_ANNOTATIONS = [...KNOWN_ANNOTATIONS, DEFAULT_CONTAINER, ...MESH_EXCLUSIONS];

interface ComponentPatch {
  readonly name: string;
  readonly patch: unknown;
}

interface ComponentFile {
  readonly name: string;
  readonly text: string;
}

/** The files of a component that makes these pods of these workloads. */
export function componentFiles(
  injected: readonly { readonly workload: Workload; readonly pod: Pod }[],
): readonly ComponentFile[] {
  const patches = injected.flatMap(({ workload, pod }) => patchesOf(workload, pod));
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1alpha1',
    kind: 'Component',
    patches: patches.map(({ name, workload: { kind, name: target } }) => ({
      path: name,
      target: { kind: `^${kind}$`, name: `^${target.replaceAll('.', '\\.')}$` },
    })),
  };
  return [
    { name: 'kustomization.yaml', text: `# Written by acg inject --component.\n${writeYaml(kustomization)}` },
    ...patches.map(({ name, workload, patch }) => ({
      name,
      text: `# ${titleOf(workload)} as acg inject makes it. A test that fails: it has changed, write this again.\n${writeYaml(patch)}`,
    })),
  ];
}

/** The patches of a workload, operations first: their tests need the workload as it was. */
function patchesOf(workload: Workload, pod: Pod): readonly (ComponentPatch & { readonly workload: Workload })[] {
  // Whatever the manifest says, the file lies in the directory of the component.
  const file = `${workload.kind}-${workload.name}`.toLowerCase().replace(/[^a-z0-9.-]/g, '-');
  const metadata = {
    labels: newMembers(workload.pod.metadata?.labels, pod.metadata?.labels),
    annotations: newMembers(workload.pod.metadata?.annotations, pod.metadata?.annotations),
  };
  return [
    { workload, name: `${file}.yaml`, patch: operations(workload, pod) },
    // A merge, because kustomize itself adds annotations to the metadata of a bare pod.
    { workload, name: `${file}-metadata.yaml`, patch: mergePatch(workload, metadata) },
  ];
}

/** The members that injection writes: the workload stays free to change the others. */
function newMembers(before: Manifest | undefined, after: Manifest | undefined): Manifest {
  return Object.fromEntries(Object.entries(after ?? {}).filter(([name, value]) => before?.[name] !== value));
}

function mergePatch({ object, template, name }: Workload, metadata: Manifest): Manifest {
  const { apiVersion, kind } = object;
  if (template.length === 0) return { apiVersion, kind, metadata: { name, ...metadata } };
  const inner = template.reduceRight<Manifest>((value, member) => ({ [member]: value }), { metadata });
  return { apiVersion, kind, metadata: { name }, ...inner };
}

function operations({ template, pod }: Workload, injected: Pod): readonly Operation[] {
  const root = template.map((member) => `/${member}`).join('');
  const { index, container } = findMerchant(pod);
  const merchant = `${root}/spec/containers/${index}`;
  const now = Object.entries(injected.spec.containers[index] ?? {});
  const before = new Map<string, unknown>(Object.entries(container));
  const grace = `${root}/spec/terminationGracePeriodSeconds`;
  return [
    // These test the inputs of the result; `replaced` tests the values that it replaces.
    { op: 'test', path: `${merchant}/name`, value: container.name },
    { op: 'test', path: `${merchant}/ports`, value: container.ports ?? null },
    ...annotationTests(root, template.length === 0, pod.metadata?.annotations),
    ...now.flatMap(([name, value]) => replaced(`${merchant}/${name}`, before.get(name), value)),
    ...replaced(grace, pod.spec.terminationGracePeriodSeconds, injected.spec.terminationGracePeriodSeconds),
    ...extended(`${root}/spec/initContainers`, pod.spec.initContainers, injected.spec.initContainers ?? []),
    ...extended(`${root}/spec/volumes`, pod.spec.volumes, injected.spec.volumes ?? []),
  ];
}

function annotationTests(root: string, bare: boolean, annotations: PodMetadata['annotations']): readonly Operation[] {
  const path = `${root}/metadata/annotations`;
  if (annotations === undefined) return bare ? [] : [{ op: 'test', path, value: null }];
  return READ_ANNOTATIONS.map((key) => ({
    op: 'test',
    path: `${path}/${pointer(key)}`,
    value: annotations[key] ?? null,
  }));
}

function replaced(path: string, before: unknown, after: unknown): readonly Operation[] {
  if (isDeepStrictEqual(before, after)) return [];
  return [
    { op: 'test', path, value: before ?? null },
    { op: 'add', path, value: after },
  ];
}

/** A list of which some items changed and some were appended. */
function extended(
  path: string,
  before: readonly unknown[] | undefined,
  after: readonly unknown[],
): readonly Operation[] {
  if (before === undefined) return replaced(path, undefined, after);
  return after.flatMap((item, index) =>
    index < before.length
      ? replaced(`${path}/${index}`, before[index], item)
      : [{ op: 'add', path: `${path}/-`, value: item }],
  );
}
