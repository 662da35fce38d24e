/** Input members that MCP clients repeat in a header: their annotations, read and checked. */

import { isObject, type Json, type JsonObject } from '../json/types.ts';
import { memberPath } from '../problems/problem.ts';
import { MIRROR_KEYWORD, type ResourceFault, subschemas } from './schemas/keywords.ts';

/** An annotated argument (2026-07-28, "Custom Headers from Tool Parameters"). */
export interface MirroredParameter {
  /** Lower-case name of the whole header, `mcp-param-…`. */
  readonly header: string;
  /** Property names from the input down to the argument. */
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

/** RFC 9110 5.6.2: one or more token characters. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<Json | undefined> = new Set<Json | undefined>(['string', 'integer', 'boolean']);

/** The annotated arguments of a checked input schema. */
export function mirroredParameters(schema: JsonObject): readonly MirroredParameter[] {
  const found: MirroredParameter[] = [];
  const walk = (node: JsonObject, path: readonly string[]): void => {
    const { properties } = node;
    if (!isObject(properties)) return;
    for (const [name, property] of Object.entries(properties)) {
      if (!isObject(property)) continue;
      const here = [...path, name];
      const mirror = property[MIRROR_KEYWORD];
      if (typeof mirror === 'string')
        found.push({
          header: `mcp-param-${mirror.toLowerCase()}`,
          path: here,
          type: property['type'] as MirroredParameter['type'],
        });
      walk(property, here);
    }
  };
  walk(schema, []);
  return found;
}

/** The faults of annotations: clients drop a tool whose annotations break the specification. */
export function mirrorFaults(root: JsonObject, at: string): readonly ResourceFault[] {
  const faults: ResourceFault[] = [];
  const names = new Set<string>();
  const walk = (schema: JsonObject, path: string, reachable: boolean): void => {
    const mirror = schema[MIRROR_KEYWORD];
    if (mirror !== undefined) {
      const message = faultOf(schema, mirror, reachable, names);
      if (message !== undefined) faults.push({ path: memberPath(path, MIRROR_KEYWORD), message });
      if (typeof mirror === 'string') names.add(mirror.toLowerCase());
    }
    for (const inner of subschemas(schema))
      if (isObject(inner.schema))
        walk(
          inner.schema,
          inner.steps.reduce<string>(memberPath, path),
          (reachable || schema === root) && inner.keyword === 'properties',
        );
  };
  walk(root, at, false);
  return faults;
}

function faultOf(schema: JsonObject, mirror: Json, reachable: boolean, names: ReadonlySet<string>): string | undefined {
  if (typeof mirror !== 'string' || !TOKEN.test(mirror)) return 'must be a header name: letters, digits and hyphens';
  if (/^mcp-param-/i.test(mirror)) return 'must be named without Mcp-Param-, which clients put in front';
  if (!reachable) return 'must stand in a property that is reached from the input through properties alone';
  if (!TYPES.has(schema['type'])) return 'is for properties of type string, integer or boolean';
  return names.has(mirror.toLowerCase()) ? 'must differ from every other one in this schema' : undefined;
}
