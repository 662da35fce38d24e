import { isObject, type Json } from '../json/types.ts';
import { memberPath } from '../problems/problem.ts';
import { mirrorFaults } from './mirrored-headers.ts';
import { carriesBody } from './request-template.ts';
import { type ResourceFault, subschemas } from './schemas/keywords.ts';
import { schemaFaults } from './schemas/schema-check.ts';
import type { ResourceConfig } from './settings.ts';
import { readTemplate } from './url-template.ts';

/**
 * Patterns that agents cannot compile. JSON Schema asks for the `u` flag (2020-12, core 6.4), with
 * which ECMAScript refuses what it tolerates without: `\-` outside a class, `[\w-.]`, a lone `]` or
 * `{`. They are enforced here, and published as they stand.
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

/**
 * Every fault of a resource's schemas, path template and bindings; paths are relative to the
 * resource.
 */
export function resourceFaults(resource: ResourceConfig): readonly ResourceFault[] {
  const { inputSchema, outputSchema } = resource;
  const faults: ResourceFault[] = [...pathFaults(resource), ...bindingFaults(resource)];
  if (inputSchema !== undefined) {
    faults.push(...schemaFaults(inputSchema, 'inputSchema'), ...mirrorFaults(inputSchema, 'inputSchema'));
    if (inputSchema['type'] !== 'object')
      faults.push({ path: 'inputSchema.type', message: 'must be object: the input is a JSON object' });
  }
  if (outputSchema !== undefined) faults.push(...schemaFaults(outputSchema, 'outputSchema'));
  return faults;
}

/** Each `{param}` must be an input property that is always there and has a text form. */
function pathFaults({ backend, inputSchema }: ResourceConfig): readonly ResourceFault[] {
  const path = 'backend.path';
  const reading = readTemplate(backend.path);
  if (!reading.ok) return [{ path, message: reading.message }];
  const properties = declared(inputSchema);
  const required = inputSchema?.['required'];
  for (const name of reading.template.parameters) {
    const property = properties.get(name);
    if (property === undefined)
      return [{ path, message: `has {${name}}, which inputSchema.properties does not declare` }];
    if (!Array.isArray(required) || !required.includes(name))
      return [{ path, message: `has {${name}}, which inputSchema.required does not list` }];
    if (isObject(property) && NO_TEXT_FORM.has(property['type'] ?? ''))
      return [{ path, message: `has {${name}}, whose type cannot be part of a path` }];
  }
  return [];
}

const NO_TEXT_FORM: ReadonlySet<Json> = new Set<Json>(['object', 'array', 'null']);

/**
 * Explicit bindings name declared properties, cover the path exactly, and put nothing where the
 * method has no place for it.
 */
function bindingFaults({ backend, inputSchema }: ResourceConfig): readonly ResourceFault[] {
  const bindings = backend.inputBindings;
  if (bindings === undefined) return [];
  const at = 'backend.inputBindings';
  const faults: ResourceFault[] = [];
  const properties = declared(inputSchema);
  for (const place of ['path', 'query', 'body'] as const)
    for (const name of bindings[place])
      if (!properties.has(name))
        faults.push({
          path: `${at}.${place}`,
          message: `names ${name}, which inputSchema.properties does not declare`,
        });
  const reading = readTemplate(backend.path);
  if (reading.ok && reading.template.parameters.toSorted().join('\n') !== bindings.path.toSorted().join('\n'))
    faults.push({ path: `${at}.path`, message: 'must name exactly the {…} of backend.path' });
  if (reading.ok)
    for (const name of bindings.query)
      if (reading.template.queryNames.has(name))
        faults.push({ path: `${at}.query`, message: `names ${name}, which backend.path sets already` });
  if (bindings.body.length > 0 && !carriesBody(backend.method))
    faults.push({ path: `${at}.body`, message: `must be empty: ${backend.method} has no body` });
  return faults;
}

function declared(schema: ResourceConfig['inputSchema']): ReadonlyMap<string, Json> {
  const properties = schema?.['properties'];
  return new Map(isObject(properties) ? Object.entries(properties) : []);
}
