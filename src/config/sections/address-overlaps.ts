/** Operations whose addresses overlap, found by what their addresses spell out. */

import { type ConfigProblem, memberPath } from '../../problems/problem.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { pathShape, templateParameters } from '../../resources/url-template.ts';

/**
 * Operations of one method whose addresses overlap, and of which one is sold at its own address: a
 * server may run either of them there. One operation may be two resources, if only one of them is
 * sold in place. Each resource is compared with those before it, and named once.
 */
export function addressOverlaps(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  if (resources.every(({ address }) => address === undefined)) return [];
  const groups = new Map<string, Group>();
  return resources.flatMap((resource) => {
    const operation = operationOf(resource);
    const other = overlapping(groups, operation);
    add(groups, operation);
    if (other === undefined) return [];
    const path = `${memberPath('resources', resource.id)}.backend.path`;
    const message = `must not be an address of resources.${other.id} too while one of them is sold at its own address`;
    return [{ path, message }];
  });
}

/** A segment has a parameter, is empty, or is any other text. */
type Kind = 'parameter' | 'empty' | 'text';

interface Operation {
  readonly resource: ResourceConfig;
  /** Equal for two that differ in case and in the names of parameters alone. */
  readonly shape: string;
  readonly method: string;
  readonly segments: readonly string[];
  readonly kinds: readonly Kind[];
  /** Equal for those whose method and kinds are. */
  readonly pattern: string;
}

/**
 * Operations of one pattern. Of two patterns the same segments are text in both, so operations that
 * overlap have the same text there, and a map finds them. A file has few patterns: the work is that
 * of its resources times them, and not of its pairs.
 */
interface Group extends Pick<Operation, 'method' | 'kinds'> {
  readonly operations: Operation[];
  /** By the pattern that it is compared with. */
  readonly views: Map<string, View>;
}

interface View {
  /** Segments that are text in both patterns. */
  readonly shared: readonly number[];
  /** By the text of these segments. */
  readonly found: Map<string, Found>;
}

/** The first resources of two shapes: of any shape one of them differs. */
interface Found {
  readonly inPlace: Map<string, ResourceConfig>;
  readonly elsewhere: Map<string, ResourceConfig>;
}

function operationOf(resource: ResourceConfig): Operation {
  const { method, path } = resource.backend;
  // Servers may compare paths without regard to case.
  const segments = path.replace(/\?.*/, '').toLowerCase().split('/');
  const kinds = segments.map(kindOf);
  return { resource, shape: pathShape(path), method, segments, kinds, pattern: `${method} ${kinds.join('/')}` };
}

function kindOf(segment: string): Kind {
  if (templateParameters(segment).length > 0) return 'parameter';
  return segment === '' ? 'empty' : 'text';
}

function add(groups: Map<string, Group>, operation: Operation): void {
  const { pattern, method, kinds } = operation;
  const group: Group = groups.get(pattern) ?? { method, kinds, operations: [], views: new Map() };
  groups.set(pattern, group);
  group.operations.push(operation);
  for (const view of group.views.values()) show(view, operation);
}

/** A resource before this one that a server may run at an address of this one. */
function overlapping(groups: ReadonlyMap<string, Group>, operation: Operation): ResourceConfig | undefined {
  for (const group of groups.values()) {
    if (!mayOverlap(group, operation)) continue;
    const view = group.views.get(operation.pattern) ?? viewOf(group, operation);
    group.views.set(operation.pattern, view);
    const found = view.found.get(textAt(operation, view));
    const other = found && colliding(found, operation);
    if (other !== undefined) return other;
  }
  return undefined;
}

/** A parameter is never empty where something is sold. */
function mayOverlap({ method, kinds }: Group, operation: Operation): boolean {
  if (method !== operation.method || kinds.length !== operation.kinds.length) return false;
  return kinds.every((kind, at) => (kind === 'empty') === (operation.kinds[at] === 'empty'));
}

function viewOf(group: Group, { kinds }: Operation): View {
  const shared = [...kinds.keys()].filter((at) => kinds[at] === 'text' && group.kinds[at] === 'text');
  const view = { shared, found: new Map<string, Found>() };
  for (const operation of group.operations) show(view, operation);
  return view;
}

function show(view: View, operation: Operation): void {
  const text = textAt(operation, view);
  const found = view.found.get(text) ?? { inPlace: new Map(), elsewhere: new Map() };
  view.found.set(text, found);
  const known = operation.resource.address === undefined ? found.elsewhere : found.inPlace;
  if (known.size < 2 && !known.has(operation.shape)) known.set(operation.shape, operation.resource);
}

function textAt({ segments }: Operation, { shared }: View): string {
  return shared.map((at) => segments[at]).join('/');
}

function colliding({ inPlace, elsewhere }: Found, { resource, shape }: Operation): ResourceConfig | undefined {
  const sold = resource.address !== undefined;
  for (const [other, found] of inPlace) if (sold || other !== shape) return found;
  if (sold) for (const [other, found] of elsewhere) if (other !== shape) return found;
  return undefined;
}
