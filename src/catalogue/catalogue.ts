import type { JsonObject } from '../json/types.ts';
import { ConfigError, type ConfigProblem, memberPath } from '../problems/problem.ts';
import { compileValidators } from './ajv.ts';
import { closeSchema, EMPTY_INPUT } from './close.ts';
import { type AdapterHealths, discoveryDocument } from './discovery.ts';
import { listedResource } from './listing.ts';
import { prepareInput } from './prepare.ts';
import type { Resource, StaticDocument } from './resource.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { staticDocument } from './static-document.ts';
import { readTemplate } from './template.ts';

/** What the gateway sells, compiled once at start. */
export interface Catalogue {
  /** A map, so that no caller's `__proto__` finds anything. Configuration order. */
  readonly byId: ReadonlyMap<string, Resource>;
  /** The closed input schema of each resource, as published: fronts that list tools or skills read it here. */
  readonly inputSchemas: ReadonlyMap<string, JsonObject>;
  /** GET /api/resources. */
  readonly listing: StaticDocument;
  /** GET /.well-known/agent-commerce; cheap enough to call for every request. */
  readonly discovery: (health: AdapterHealths) => StaticDocument;
}

/**
 * Compiles every resource. `startedAt` (ISO 8601) dates the health of fronts before their first check.
 * @throws ConfigError for whatever `loadConfig` could not see: a schema that does not compile
 */
export function compileCatalogue(config: CatalogueSettings, startedAt = new Date().toISOString()): Catalogue {
  const problems: ConfigProblem[] = [];
  const byId = new Map<string, Resource>();
  const inputSchemas = new Map<string, JsonObject>();
  for (const resource of config.resources) {
    const inputSchema = resource.inputSchema === undefined ? EMPTY_INPUT : closeSchema(resource.inputSchema);
    inputSchemas.set(resource.id, inputSchema);
    const compiled = compileResource(resource, inputSchema);
    if ('id' in compiled) byId.set(resource.id, compiled);
    else problems.push({ path: `${memberPath('resources', resource.id)}.${compiled.path}`, message: compiled.message });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const resources = config.resources.map((resource) =>
    listedResource(resource, inputSchemas.get(resource.id) ?? EMPTY_INPUT),
  );
  return {
    byId,
    inputSchemas,
    listing: staticDocument({ resources }),
    discovery: discoveryDocument(config, startedAt),
  };
}

function compileResource(config: ResourceConfig, inputSchema: JsonObject): Resource | ConfigProblem {
  const reading = readTemplate(config.backend.path);
  if (!reading.ok) return { path: 'backend.path', message: reading.message };
  let validators: ReturnType<typeof compileValidators>;
  try {
    validators = compileValidators(inputSchema);
  } catch (error) {
    return {
      path: 'inputSchema',
      message: `does not compile: ${error instanceof Error ? error.message : 'unknown fault'}`,
    };
  }
  const { method, timeoutMs, maxResponseBytes, idempotent, relayStatuses } = config.backend;
  return {
    id: config.id,
    name: config.name,
    pricing: config.pricing,
    exposedVia: config.exposedVia,
    backend: { method, timeoutMs, maxResponseBytes, idempotent, relayStatuses },
    prepare: prepareInput(validators, config.backend, reading.template),
  };
}
