import { isObject } from '../json/object.ts';
import type { Json } from '../json/types.ts';
import { memberPath } from '../problems/problem.ts';
import type { ResourceFault } from './schemas/fault.ts';
import { subschemas } from './schemas/subschemas.ts';
import type { ResourceConfig } from './settings.ts';

/**
 * Patterns that agents cannot compile. JSON Schema asks for the `u` flag (2020-12, core 6.4), with which ECMAScript refuses what it tolerates
 * without: `\-` outside a class, `[\w-.]`, a lone `]` or `{`. They are enforced here, and published as they stand.
 */
export function publishedPatternWarnings({ inputSchema, outputSchema }: ResourceConfig): readonly ResourceFault[] {
  const found: ResourceFault[] = [];
  const walk = (schema: Json, path: string): void => {
    if (!isObject(schema)) return;
    const { pattern, patternProperties } = schema;
    if (typeof pattern === 'string' && !compilesWithUnicode(pattern))
      found.push({ path: memberPath(path, 'pattern'), message: WARNING });
    if (isObject(patternProperties) && !Object.keys(patternProperties).every(compilesWithUnicode))
      found.push({ path: memberPath(path, 'patternProperties'), message: WARNING });
    for (const inner of subschemas(schema)) walk(inner.schema, inner.steps.reduce<string>(memberPath, path));
  };
  if (inputSchema !== undefined) walk(inputSchema, 'inputSchema');
  if (outputSchema !== undefined) walk(outputSchema, 'outputSchema');
  return found;
}

const WARNING =
  'agents that compile it with the u flag, as JSON Schema asks, cannot: escape only what needs it, and write a - in a class first or last';

function compilesWithUnicode(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') !== undefined;
  } catch {
    return false;
  }
}
