/** Keeps a call of one resource from running another one that is sold on other terms. */

import { termsOf } from '../config/sections/resources.ts';
import { createPathGuard, foldedSegments } from '../passthrough/path-guard.ts';
import { separatedParameters } from '../resources/backend-request.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { pathShape, templateParameters } from '../resources/url-template.ts';
import { operationsOf, type RouteSettings } from './open-routes.ts';

type Segments = ReturnType<typeof foldedSegments>;

/**
 * Compiles whether some server may take a path that was built for a resource for the path of an
 * operation with another price or another need of a mandate, also where a fixed query alone tells
 * the two apart. The guard of a resource is made with its first call.
 */
export function otherOperations(
  config: RouteSettings,
  catalogue: Pick<Catalogue, 'byId'>,
): (resourceId: string, path: string) => boolean {
  const known = operationsOf(config, catalogue).map((operation) => ({
    ...operation,
    terms: operation.resource === undefined ? operation.setting : termsOf(operation.resource),
    shape: pathShape(operation.template),
    segments: foldedSegments(operation.template),
    pairs: pairsOf(operation.template.split('?', 2)[1] ?? ''),
  }));
  const sold = known.filter(({ guarded }) => guarded);
  const judges = new Map<string, (path: string, query: string) => boolean>();
  for (const one of known) {
    if (one.resource === undefined) continue;
    const others = sold.filter(({ method, terms }) => method === one.method && terms !== one.terms);
    const anyLength = separatedParameters(one.resource).size > 0;
    const varies = templateParameters(one.template).length > 0;
    const paths = others.filter(
      ({ shape, segments }) => varies && shape !== one.shape && (anyLength || mayMeet(one.segments, segments)),
    );
    const queries = others
      .filter(({ shape, pairs }) => shape === one.shape && pairs.length > 0 && !holdsAll(one.pairs, pairs))
      .map(({ pairs }) => pairs);
    if (paths.length + queries.length > 0) judges.set(one.resource.id, judgeOf(paths, queries));
  }
  return function leadsElsewhere(resourceId, target) {
    const judge = judges.get(resourceId);
    if (judge === undefined) return false;
    const [path = '', query = ''] = target.split('?', 2);
    return judge(path, query);
  };
}

/** `queries`: the fixed queries of operations at the same path. */
function judgeOf(
  paths: readonly { readonly template: string }[],
  queries: readonly (readonly string[])[],
): (path: string, query: string) => boolean {
  let guard: ReturnType<typeof createPathGuard> | undefined;
  return (path, query) => {
    guard ??= createPathGuard(paths);
    const judge = guard;
    if (paths.length > 0 && spellingsOf(path).some((spelling) => judge(spelling).kind !== 'pass')) return true;
    if (queries.length === 0) return false;
    const sent = pairsOf(query);
    return queries.some((pairs) => holdsAll(sent, pairs));
  };
}

/** The pairs of a query as texts, as servers compare them at most: without regard to case. */
function pairsOf(query: string): readonly string[] {
  return [...new URLSearchParams(query)].map(([name, value]) => `${name}=${value}`.toLowerCase());
}

function holdsAll(pairs: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((pair) => pairs.includes(pair));
}

/** Whether one path may fit both templates; a parameter takes any text of its segment. */
function mayMeet(one: Segments, other: Segments): boolean {
  const isText = ({ length }: readonly string[]): boolean => length === 1;
  return (
    one.length === other.length &&
    one.every((literals, at) => {
      const others = other[at] ?? [];
      return !isText(literals) || !isText(others) || literals[0] === others[0];
    })
  );
}

/** A path, and the same without what frameworks take for its format (`/reports/full.json`). */
function spellingsOf(path: string): readonly string[] {
  const name = path.lastIndexOf('/') + 1;
  const ends = new Set([path.length, path.indexOf('.', name), path.lastIndexOf('.')].filter((end) => end > name));
  return [...ends].map((end) => path.slice(0, end));
}
