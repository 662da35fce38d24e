/** Operations whose addresses overlap, found by what their addresses spell out. */

import { type ConfigProblem, memberPath } from '../../problems/problem.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { pathShape, templateParameters } from '../../resources/url-template.ts';

/**
 * Operations of one method whose addresses overlap, so that a server may run either of them, and of
 * which one is sold at its own address or on other terms than the other. One operation may be two
 * resources, if only one of them is sold in place. Each resource is compared with those before it,
 * and named once.
 */
export function addressOverlaps(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  const groups = new Map<string, Group>();
  return resources.flatMap((resource) => {
    const operation = operationOf(resource);
    const other = overlapping(groups, operation);
    add(groups, operation);
    if (other === undefined) return [];
    const path = `${memberPath('resources', resource.id)}.backend.path`;
    const why =
      resource.address !== undefined || other.address !== undefined
        ? 'while one of them is sold at its own address'
        : 'while their prices or mandates differ: a server may run either of them there';
    const message = `must not be an address of resources.${other.id} too ${why}`;
    return [{ path, message }];
  });
}

/** Equal for resources that cost the same and need the same. */
export function termsOf({ pricing, authorization }: Pick<ResourceConfig, 'pricing' | 'authorization'>): string {
  const price = pricing.type === 'free' ? '' : `${pricing.units} ${pricing.currency}`;
  return [price, ...authorization].join(' ');
}

/** A segment has a parameter, is empty, or is any other text. */
type Kind = 'parameter' | 'empty' | 'text';

interface Operation {
  readonly resource: ResourceConfig;
  /** Equal for two that differ in case and in the names of parameters alone. */
  readonly shape: string;
  /** Equal for two of one price that need the same. */
  readonly terms: string;
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

interface Found {
  readonly inPlace: Map<string, ResourceConfig>;
  /** By their terms. */
  readonly elsewhere: Map<string, Map<string, ResourceConfig>>;
}

function operationOf(resource: ResourceConfig): Operation {
  const { method, path } = resource.backend;
  // Servers may compare paths without regard to case.
  const segments = path.replace(/\?.*/, '').toLowerCase().split('/');
  const kinds = segments.map(kindOf);
  const terms = termsOf(resource);
  return { resource, shape: pathShape(path), terms, method, segments, kinds, pattern: `${method} ${kinds.join('/')}` };
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
  const { resource, shape, terms } = operation;
  const known = resource.address === undefined ? (found.elsewhere.get(terms) ?? new Map()) : found.inPlace;
  if (resource.address === undefined) found.elsewhere.set(terms, known);
  // The first of two shapes are enough: of any shape one of them differs.
  if (known.size < 2 && !known.has(shape)) known.set(shape, resource);
}

function textAt({ segments }: Operation, { shared }: View): string {
  return shared.map((at) => segments[at]).join('/');
}

function colliding({ inPlace, elsewhere }: Found, { resource, shape, terms }: Operation): ResourceConfig | undefined {
  const sold = resource.address !== undefined;
  for (const [other, found] of inPlace) if (sold || other !== shape) return found;
  for (const [asked, known] of elsewhere)
    if (sold || asked !== terms) for (const [other, found] of known) if (other !== shape) return found;
  return undefined;
}
