/** Checks a configured resource: its schemas, path template and input bindings. */

import type { Channel } from '../events/event.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { memberPath } from '../problems/problem.ts';
import { carriesBody, FORM_TYPE } from './backend-request.ts';
import { reverseTemplate } from './reverse-template.ts';
import { type ResourceFault, subschemas } from './schemas/keywords.ts';
import { hasTooMany, schemaFaults } from './schemas/schema-check.ts';
import type { ResourceConfig } from './settings.ts';
import { mirrorFaults } from './tool-form.ts';
import { readTemplate } from './url-template.ts';

/** Channels that the extension `bazaar` has a form for. */
const LISTED_CHANNELS: ReadonlySet<Channel> = new Set(['http', 'origin', 'mcp']);
const NO_TEXT_FORM: ReadonlySet<Json> = new Set<Json>(['object', 'array', 'null']);
const NOT_UNICODE =
  'agents that compile it with the u flag, as JSON Schema asks, cannot: escape only what needs it, and write a - in a class first or last';

/** The settings by which an operation is checked. */
type OperationSettings = Pick<ResourceConfig, 'backend' | 'inputSchema' | 'address'>;

/** Faults of a path template by itself; paths are relative to the resource. */
export function templateFaults(path: string): readonly ResourceFault[] {
  const reading = readTemplate(path);
  return reading.ok ? [] : [{ path: 'backend.path', message: reading.message }];
}

/** Faults of path template, bindings and own address; paths are relative to the resource. */
export function operationFaults(resource: OperationSettings): readonly ResourceFault[] {
  return [...pathFaults(resource), ...bindingFaults(resource), ...addressFaults(resource)];
}

/** Faults of an input schema; paths are relative to the resource. */
export function inputFaults(schema: JsonObject): readonly ResourceFault[] {
  const at = 'inputSchema';
  const faults = [...schemaFaults(schema, at), ...(hasTooMany(schema) ? [] : mirrorFaults(schema, at))];
  return schema['type'] === 'object'
    ? faults
    : [...faults, { path: `${at}.type`, message: 'must be object: the input is a JSON object' }];
}

/** Faults of an output schema; paths are relative to the resource. */
export function outputFaults(schema: JsonObject): readonly ResourceFault[] {
  return schemaFaults(schema, 'outputSchema');
}

/** Every fault of a resource; paths are relative to it. */
export function resourceFaults(resource: ResourceConfig): readonly ResourceFault[] {
  const { inputSchema, outputSchema } = resource;
  return [
    ...operationFaults(resource),
    ...(inputSchema === undefined ? [] : inputFaults(inputSchema)),
    ...(outputSchema === undefined ? [] : outputFaults(outputSchema)),
    ...bazaarFaults(resource),
  ];
}

/** Faults of `bazaar`: it needs a price, and a channel whose 402 has a form for it. */
export function bazaarFaults({
  bazaar,
  pricing,
  exposedVia,
}: Pick<ResourceConfig, 'bazaar' | 'pricing' | 'exposedVia'>): readonly ResourceFault[] {
  if (bazaar === undefined) return [];
  const path = 'bazaar';
  if (pricing.type === 'free') return [{ path, message: 'is for resources with a price; remove it' }];
  return exposedVia.some((channel) => LISTED_CHANNELS.has(channel))
    ? []
    : [{ path, message: `needs one of ${[...LISTED_CHANNELS].join(', ')} in expose` }];
}

/** Each `{param}` must be a required input property with a text form. */
function pathFaults({ backend, inputSchema }: OperationSettings): readonly ResourceFault[] {
  const path = 'backend.path';
  const reading = readTemplate(backend.path);
  if (!reading.ok) return templateFaults(backend.path);
  const required = inputSchema?.['required'];
  for (const name of reading.template.parameters) {
    const property = declared(inputSchema, name);
    if (property === undefined) {
      const [plain = ''] = /[\w-]+/.exec(name) ?? [];
      const hint = plain !== name && declared(inputSchema, plain) !== undefined ? `; write {${plain}}` : '';
      return [{ path, message: `has {${name}}, which inputSchema.properties does not declare${hint}` }];
    }
    if (!Array.isArray(required) || !required.includes(name))
      return [{ path, message: `has {${name}}, which inputSchema.required does not list` }];
    if (isObject(property) && NO_TEXT_FORM.has(property['type'] ?? ''))
      return [{ path, message: `has {${name}}, whose type cannot be part of a path` }];
  }
  return [];
}

/** Faults of a resource that is sold at its own address: each address must have one input. */
function addressFaults(resource: OperationSettings): readonly ResourceFault[] {
  if (resource.address === undefined) return [];
  const reversal = reverseTemplate(resource);
  if (reversal.ok) return [];
  return [
    { path: 'backend.path', message: `cannot be sold at its own address (expose: origin): it ${reversal.message}` },
  ];
}

/** Bindings name declared properties and cover the path exactly; a body needs a method with one. */
function bindingFaults({ backend, inputSchema }: OperationSettings): readonly ResourceFault[] {
  const bindings = backend.inputBindings;
  const isForm = backend.contentType === FORM_TYPE;
  const faults: ResourceFault[] = [];
  if (backend.contentType !== 'application/json' && !carriesBody(backend.method))
    faults.push({ path: 'backend.contentType', message: `has no effect: ${backend.method} has no body` });
  if (bindings === undefined) return faults;
  const at = 'backend.inputBindings';
  for (const part of ['path', 'query', 'body'] as const)
    for (const name of [bindings[part]].flat())
      if (declared(inputSchema, name) === undefined)
        faults.push({
          path: `${at}.${part}`,
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
  for (const name of bindings.styles.keys())
    if (
      !bindings.query.includes(name) &&
      !(isForm && (typeof bindings.body === 'string' || bindings.body.includes(name)))
    )
      faults.push({
        path: memberPath(`${at}.styles`, name),
        message: `is neither in query nor a field of a form (contentType ${FORM_TYPE})`,
      });
  return faults;
}

/** Declared properties that explicit bindings send nowhere. */
export function unsentInput({ backend, inputSchema }: OperationSettings): readonly string[] {
  const { inputBindings } = backend;
  const properties = inputSchema?.['properties'];
  if (inputBindings === undefined || !isObject(properties)) return [];
  const { path, query, body } = inputBindings;
  const sent = new Set([path, query, body].flat());
  return Object.keys(properties).filter((name) => !sent.has(name));
}

/** The schema of a property, when it is declared. */
function declared(schema: ResourceConfig['inputSchema'], name: string): Json | undefined {
  const properties = schema?.['properties'];
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/**
 * Patterns that are enforced here and that agents cannot compile. JSON Schema asks for the flag `u`
 * (2020-12, core 6.4), with which ECMAScript refuses `\-` outside a class, `[\w-.]` and a lone `]`
 * or `{`.
 */
export function publishedPatternWarnings({ inputSchema, outputSchema }: ResourceConfig): readonly ResourceFault[] {
  const found: ResourceFault[] = [];
  const walk = (schema: Json, path: string): void => {
    if (!isObject(schema)) return;
    const { pattern, patternProperties } = schema;
    if (typeof pattern === 'string' && !compilesWithUnicode(pattern))
      found.push({ path: memberPath(path, 'pattern'), message: NOT_UNICODE });
    if (isObject(patternProperties) && !Object.keys(patternProperties).every(compilesWithUnicode))
      found.push({ path: memberPath(path, 'patternProperties'), message: NOT_UNICODE });
    for (const inner of subschemas(schema)) walk(inner.schema, inner.steps.reduce<string>(memberPath, path));
  };
  if (inputSchema !== undefined) walk(inputSchema, 'inputSchema');
  if (outputSchema !== undefined) walk(outputSchema, 'outputSchema');
  return found;
}

function compilesWithUnicode(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') !== undefined;
  } catch {
    return false;
  }
}
