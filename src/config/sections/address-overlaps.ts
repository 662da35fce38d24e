/** Operations whose addresses overlap, found in a trie of their segments instead of in pairs. */

import { type ConfigProblem, memberPath } from '../../problems/problem.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { pathShape, templateParameters } from '../../resources/url-template.ts';

/** What ends at a segment: the first resource of each shape of address. */
interface Node {
  readonly literals: Map<string, Node>;
  /** The next segment has a parameter. */
  parameter: Node | undefined;
  readonly inPlace: Map<string, ResourceConfig>;
  readonly elsewhere: Map<string, ResourceConfig>;
}

/**
 * Operations of one method whose addresses overlap, and of which one is sold at its own address: a
 * server may run either of them there. One operation may be two resources, if only one of them is
 * sold in place. Each resource is compared with those before it, and named once.
 */
export function addressOverlaps(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  if (resources.every(({ address }) => address === undefined)) return [];
  const roots = new Map<string, Node>();
  return resources.flatMap((resource) => {
    const { method } = resource.backend;
    const root = roots.get(method) ?? newNode();
    roots.set(method, root);
    const segments = addressSegments(resource);
    const other = overlapping(root, segments, resource);
    add(root, segments, resource);
    if (other === undefined) return [];
    const path = `${memberPath('resources', resource.id)}.backend.path`;
    const message = `must not be an address of resources.${other.id} too while one of them is sold at its own address`;
    return [{ path, message }];
  });
}

function newNode(): Node {
  return { literals: new Map(), parameter: undefined, inPlace: new Map(), elsewhere: new Map() };
}

function add(root: Node, segments: readonly string[], resource: ResourceConfig): void {
  let node = root;
  for (const segment of segments) {
    const next = (isParameter(segment) ? node.parameter : node.literals.get(segment)) ?? newNode();
    if (isParameter(segment)) node.parameter = next;
    else node.literals.set(segment, next);
    node = next;
  }
  const known = resource.address === undefined ? node.elsewhere : node.inPlace;
  const shape = pathShape(resource.backend.path);
  if (!known.has(shape)) known.set(shape, resource);
}

/** A resource of the trie that a server may run at an address of this one. */
function overlapping(
  node: Node,
  [segment, ...rest]: readonly string[],
  resource: ResourceConfig,
): ResourceConfig | undefined {
  if (segment === undefined) return colliding(node, resource);
  const nexts: Node[] = [];
  if (isParameter(segment)) {
    // A parameter is never empty where something is sold.
    for (const [literal, next] of node.literals) if (literal !== '') nexts.push(next);
  } else {
    const next = node.literals.get(segment);
    if (next !== undefined) nexts.push(next);
  }
  if (node.parameter !== undefined && segment !== '') nexts.push(node.parameter);
  for (const next of nexts) {
    const found = overlapping(next, rest, resource);
    if (found !== undefined) return found;
  }
  return undefined;
}

function colliding({ inPlace, elsewhere }: Node, resource: ResourceConfig): ResourceConfig | undefined {
  const shape = pathShape(resource.backend.path);
  const sold = resource.address !== undefined;
  for (const [other, found] of inPlace) if (sold || other !== shape) return found;
  if (sold) for (const [other, found] of elsewhere) if (other !== shape) return found;
  return undefined;
}

/** Servers may compare paths without regard to case. */
function addressSegments({ backend }: ResourceConfig): readonly string[] {
  return backend.path.replace(/\?.*/, '').toLowerCase().split('/');
}

function isParameter(segment: string): boolean {
  return templateParameters(segment).length > 0;
}
