/** The catalogue: every resource compiled at start, with the bytes of the published documents. */

import type { ValidateFunction } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from '../json/types.ts';
import type { BazaarForms } from '../payments/x402/wire/types.ts';
import { ConfigError, type ConfigProblem, memberPath } from '../problems/problem.ts';
import { separatedParameters } from './backend-request.ts';
import { bazaarForms } from './bazaar.ts';
import { type AdapterHealths, discoveryDocument } from './discovery.ts';
import { type ListedResource, listedResource } from './listing.ts';
import { sendable } from './nullable.ts';
import { MatchBudgetError, withMatchBudget } from './patterns/budget.ts';
import { proveLinearEngine } from './patterns/linear.ts';
import { prepareInput } from './prepare.ts';
import type { Resource } from './resource.ts';
import { reverseTemplate } from './reverse-template.ts';
import { createCompiler, type Validators } from './schemas/ajv.ts';
import { closeSchema, EMPTY_INPUT } from './schemas/closed-objects.ts';
import { MatchLengthError } from './schemas/matching.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { type StaticDocument, staticDocument } from './static-document.ts';
import { toolNames } from './tool-form.ts';
import { type PathTemplate, readTemplate } from './url-template.ts';

export interface Catalogue {
  /** In configuration order. A map, so that `__proto__` of a caller finds nothing. */
  readonly byId: ReadonlyMap<string, Resource>;
  /** The public part of each resource, in configuration order; adapters list tools from it. */
  readonly listed: readonly ListedResource[];
  /** How those are called that are to be catalogued, by id. */
  readonly bazaar: ReadonlyMap<string, BazaarForms>;
  /** GET /api/resources. */
  readonly listing: StaticDocument;
  /** GET /.well-known/agent-commerce; cheap enough for every request. */
  readonly discovery: (health: AdapterHealths) => StaticDocument;
}

/**
 * `startedAt` (ISO 8601) dates the health of adapters before their first check.
 * @throws ConfigError for a schema that does not compile, which `loadConfig` cannot see;
 * LinearEngineMissing
 */
export function compileCatalogue(config: CatalogueSettings, startedAt = new Date().toISOString()): Catalogue {
  proveLinearEngine();
  const problems: ConfigProblem[] = [];
  const byId = new Map<string, Resource>();
  const listed: ListedResource[] = [];
  const bazaar = new Map<string, BazaarForms>();
  const compile = createCompiler();
  const tools = toolNames(config.resources.filter(({ exposedVia }) => exposedVia.includes('mcp')).map(({ id }) => id));
  for (const resource of config.resources) {
    const reading = readTemplate(resource.backend.path);
    if (!reading.ok) {
      problems.push({ path: `${memberPath('resources', resource.id)}.backend.path`, message: reading.message });
      continue;
    }
    const { template } = reading;
    const sent = resource.inputSchema && sendable(resource.inputSchema, resource.backend, template);
    const inputSchema = sent === undefined ? EMPTY_INPUT : closeSchema(sent.schema);
    const entry = listedResource(resource, inputSchema);
    listed.push(entry);
    const compiled = compileResource(resource, { inputSchema, template, omitted: sent?.omitted ?? NONE }, compile);
    const forms =
      'id' in compiled ? bazaarForms(resource, entry, compiled, config, tools.get(resource.id)) : [compiled];
    if ('id' in compiled) byId.set(resource.id, compiled);
    if ('about' in forms) bazaar.set(resource.id, forms);
    else
      for (const { path, message } of forms)
        problems.push({ path: `${memberPath('resources', resource.id)}.${path}`, message });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    byId,
    listed,
    bazaar,
    listing: staticDocument({ resources: listed }),
    discovery: discoveryDocument(config, startedAt),
  };
}

const NONE: ReadonlySet<string> = new Set();

interface ReadResource {
  /** As it is published. */
  readonly inputSchema: JsonObject;
  readonly template: PathTemplate;
  /** Members whose null means that they are not given. */
  readonly omitted: ReadonlySet<string>;
}

function compileResource(
  config: ResourceConfig,
  { inputSchema, template, omitted }: ReadResource,
  compile: Compile,
): Resource | ConfigProblem {
  const input = compiled('inputSchema', inputSchema, compile);
  if ('path' in input) return input;
  const output = config.outputSchema === undefined ? undefined : compiled('outputSchema', config.outputSchema, compile);
  if (output !== undefined && 'path' in output) return output;
  const reversal = config.address === undefined ? undefined : reverseTemplate(config);
  if (reversal?.ok === false) return { path: 'backend.path', message: reversal.message };
  const { method, path, headers, timeoutMs, maxResponseBytes, idempotent, relayStatuses } = config.backend;
  return {
    id: config.id,
    name: config.name,
    pricing: config.pricing,
    exposedVia: config.exposedVia,
    authorization: config.authorization,
    backend: { method, path, headers, timeoutMs, maxResponseBytes, idempotent, relayStatuses },
    address: reversal?.address,
    compile: () => input.compile(),
    prepare: prepareInput(input, config.backend, { template, separated: separatedParameters(config), omitted }),
    fitsOutput: output === undefined ? undefined : (value) => fits(output.first(), value),
  };
}

type Compile = ReturnType<typeof createCompiler>;

function compiled(path: string, schema: JsonObject, compile: Compile): Validators | ConfigProblem {
  try {
    return compile(schema);
  } catch (error) {
    return { path, message: `does not compile: ${error instanceof Error ? error.message : 'unknown fault'}` };
  }
}

/**
 * A value that cannot be tried does not fit: its texts are too long for a pattern, or it is nested
 * deeper than the stack allows (the depth of a backend's answer is not bounded).
 */
function fits(validate: ValidateFunction, value: Json): boolean {
  try {
    return withMatchBudget(() => validate(value));
  } catch (error) {
    if (error instanceof MatchLengthError || error instanceof MatchBudgetError || error instanceof RangeError)
      return false;
    throw error;
  }
}
