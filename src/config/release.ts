import type { ProblemList } from '../problems/problem.ts';
import type { ConfigDocument } from './document.ts';

type Feature = 'mcp' | 'a2a' | 'acp';

/** Known to the schema, not served by this release. The issue that brings one deletes its line here, and nothing else. */
const NOT_SERVED_YET: ReadonlySet<Feature> = new Set<Feature>([
  'acp', //
]);

const MESSAGE = 'is not served by this release yet; remove it or set it to false';

/** A feature that is switched on and silently absent would sell something that nobody can buy, or skip a check. */
export function refuseUnserved(document: ConfigDocument, problems: ProblemList): void {
  const { protocols } = document;
  for (const front of ['mcp', 'a2a', 'acp'] as const)
    if (NOT_SERVED_YET.has(front) && protocols?.[front]?.enabled === true)
      problems.add(`protocols.${front}.enabled`, MESSAGE);
}
