/** Operations whose addresses overlap, found by what their addresses spell out. */

import { type ConfigProblem, memberPath } from '../../problems/problem.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { pathShape } from '../../resources/url-template.ts';

/**
 * Operations of one method whose addresses overlap, so that a server may run either of them, and of
 * which one is sold at its own address or on other terms than the other. One operation may be two
 * resources, if only one of them is sold in place. Each resource is compared with those before it,
 * and named once.
 */
export function addressOverlaps(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  const roots = new Map<string, Node>();
  return resources.flatMap((resource) => {
    const { method, path: template } = resource.backend;
    const operation = { resource, shape: pathShape(template), terms: termsOf(resource) };
    const root = roots.get(method) ?? { below: new Map(), operations: [] };
    roots.set(method, root);
    const segments = operation.shape.split('/').map((segment) => (segment.includes(ANY) ? ANY : segment));
    const other = overlapping(root, segments, operation);
    add(root, segments, operation);
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

interface Operation {
  readonly resource: ResourceConfig;
  /** Equal for two that differ in case and in the names of parameters alone. */
  readonly shape: string;
  /** Equal for two of one price that need the same. */
  readonly terms: string;
}

/** A segment of paths. */
interface Node {
  /** By the text of the next segment. */
  readonly below: Map<string, Node>;
  /** Whose path ends here. */
  readonly operations: Operation[];
}

/** A segment with a parameter: it may have any text, but is never empty where something is sold. */
const ANY = '{}';

function add(node: Node, [segment, ...rest]: readonly string[], operation: Operation): void {
  if (segment === undefined) {
    node.operations.push(operation);
    return;
  }
  const next = node.below.get(segment) ?? { below: new Map(), operations: [] };
  node.below.set(segment, next);
  add(next, rest, operation);
}

/** A resource before this one that a server may run at an address of this one. */
function overlapping(
  node: Node,
  [segment, ...rest]: readonly string[],
  operation: Operation,
): ResourceConfig | undefined {
  if (segment === undefined) return node.operations.find((other) => collides(operation, other))?.resource;
  const texts = segment === ANY ? [...node.below.keys()] : [segment, ANY];
  for (const text of texts) {
    const next = (text === '') === (segment === '') ? node.below.get(text) : undefined;
    const found = next && overlapping(next, rest, operation);
    if (found !== undefined) return found;
  }
  return undefined;
}

function collides(one: Operation, other: Operation): boolean {
  const sold = [one, other].filter(({ resource }) => resource.address !== undefined).length;
  return sold === 2 || (one.shape !== other.shape && (sold === 1 || one.terms !== other.terms));
}
