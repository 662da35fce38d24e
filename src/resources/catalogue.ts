/**
 * The catalogue: every resource compiled at start, with the bytes of the published documents and
 * its form in the `bazaar` extension of x402.
 */

import type { ValidateFunction } from 'ajv/dist/2020.js';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { withOpenSchema } from '../payments/x402/wire/challenge.ts';
import type { BazaarForms, Extension } from '../payments/x402/wire/types.ts';
import { ConfigError, type ConfigProblem, memberPath } from '../problems/problem.ts';
import {
  carriesBody,
  inputParts,
  pick,
  prepareInput,
  queryProperties,
  sendable,
  separatedParameters,
} from './backend-request.ts';
import { type AdapterHealths, discoveryDocument } from './discovery.ts';
import { type ListedResource, listedResource } from './listing.ts';
import { MatchBudgetError, proveLinearEngine, withMatchBudget } from './patterns/linear.ts';
import type { Resource } from './resource.ts';
import { reverseTemplate } from './reverse-template.ts';
import { createCompiler, type Validators } from './schemas/ajv.ts';
import { closeSchema, EMPTY_INPUT } from './schemas/closed-objects.ts';
import { MatchLengthError } from './schemas/matching.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { type StaticDocument, staticDocument } from './static-document.ts';
import { toolNames } from './tool-form.ts';
import { type PathTemplate, readTemplate, templatePath } from './url-template.ts';

export interface Catalogue {
  /** In configuration order. A map, so that `__proto__` of a caller finds nothing. */
  readonly byId: ReadonlyMap<string, Resource>;
  /** The public part of each resource, in configuration order; adapters list tools from it. */
  readonly listed: readonly ListedResource[];
  /** Forms of the resources that catalogues are to list, by id. */
  readonly bazaar: ReadonlyMap<string, BazaarForms>;
  /** GET /api/resources. */
  readonly listing: StaticDocument;
  /** One entry of that list, made when it is first asked for; undefined: there is none. */
  readonly entry: (id: string) => StaticDocument | undefined;
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
  const entries = config.x402 === undefined ? [] : [config.x402, ...config.alternatives];
  for (const resource of config.resources) {
    const reading = readTemplate(resource.backend.path);
    if (!reading.ok) {
      problems.push({ path: `${memberPath('resources', resource.id)}.backend.path`, message: reading.message });
      continue;
    }
    const { template } = reading;
    const sent = resource.inputSchema && sendable(resource.inputSchema, resource.backend, template);
    const inputSchema = sent === undefined ? EMPTY_INPUT : closeSchema(sent.schema);
    const entry = listedResource(resource, inputSchema, entries);
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
    entry: entriesOf(listed),
    discovery: discoveryDocument(config, startedAt),
  };
}

function entriesOf(listed: readonly ListedResource[]): Catalogue['entry'] {
  const byId = new Map(listed.map((entry) => [entry.id, entry]));
  const made = new Map<string, StaticDocument>();
  return (id) => {
    const entry = byId.get(id);
    if (entry === undefined) return undefined;
    const document = made.get(id) ?? staticDocument(entry);
    made.set(id, document);
    return document;
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

/**
 * Most bytes of one form. A 402 has 4 KiB of header for it and the offer, and clients echo it with
 * their proof.
 */
export const MOST_BYTES = 1_536;

/** JSON of a media type is an example as it stands; of any other type it is a text. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i;
/** Keywords that mean something else, or nothing, within another schema. */
const BOUND_TO_ITS_ROOT = /"\$(?:ref|id|anchor|dynamicRef|dynamicAnchor|schema)":/;
/** Texts that catalogues take: the name of a parameter, and a path with such names. */
const PARAMETER = /\{([A-Za-z_]\w*)\}/g;
const ROUTE_TEMPLATE = /^\/[\w/:.\-~%]+$/;
const OPEN: JsonObject = { type: 'object' };

/** One member of `info.input` and its schema. */
type Member = readonly [name: string, value: Json, schema: JsonObject];

/** The parts in which the forms of a resource differ. */
interface Form {
  readonly members: readonly Member[];
  readonly routeTemplate?: string | undefined;
}

/**
 * The forms of a resource whose configuration asks for them, or their problems; paths are
 * relative to the resource. `compiled`: judges the example, which must be an input.
 */
function bazaarForms(
  config: ResourceConfig,
  listed: ListedResource,
  compiled: Pick<Resource, 'prepare' | 'fitsOutput'>,
  settings: Pick<CatalogueSettings, 'merchant' | 'protocols'>,
  toolName = config.id,
): BazaarForms | readonly ConfigProblem[] {
  const { bazaar } = config;
  if (bazaar === undefined) return [];
  const { example, output } = bazaar;
  const prepared = compiled.prepare(example, undefined);
  if (!prepared.ok)
    return prepared.problems.map(({ path, message }) => ({ path: `bazaar.example${path.slice(1)}`, message }));
  if (output !== undefined && compiled.fitsOutput?.(output) === false)
    return [{ path: 'bazaar.output', message: 'must fit outputSchema' }];
  const { input } = prepared;
  const made = {
    invoke: listed.exposedVia.includes('http') ? extension(config, invokeForms(input, listed)) : undefined,
    inPlace: config.address === undefined ? undefined : extension(config, inPlaceForms(input, config, listed)),
    tool: listed.exposedVia.includes('mcp') ? extension(config, toolForms(input, toolName, listed)) : undefined,
  };
  const { invoke, inPlace, tool } = made;
  const largest = Math.max(...Object.values(made).map((form) => (form === undefined ? 0 : bytesOf(form))));
  if (largest > MOST_BYTES)
    return [
      {
        path: 'bazaar',
        message: `makes ${largest} bytes of each challenge, of which there may be ${MOST_BYTES}: shorten example and output`,
      },
    ];
  const { description, mimeType, labels } = config;
  return {
    about: { ...(description === undefined ? {} : { description }), mimeType, ...labels },
    invoke,
    inPlace,
    tool: tool && { extension: tool, url: settings.merchant.publicBaseUrl + settings.protocols.mcp.mountPath },
  };
}

/**
 * The first form that is small enough, else the shortest: forms lose the schema of the answer
 * first, then that of the input.
 */
function extension({ bazaar, mimeType, outputSchema }: ResourceConfig, forms: readonly Form[]): Extension | undefined {
  const example = bazaar?.output;
  const type = JSON_TYPE.test(mimeType) ? 'json' : 'text';
  const shown = example !== undefined || outputSchema !== undefined;
  const output = shown ? { output: example === undefined ? { type } : { type, example } } : {};
  const answers: readonly JsonObject[] = outputSchema === undefined ? [{}] : schemasOf(outputSchema, {});
  const made = forms.flatMap(({ members, routeTemplate }) =>
    answers.map((answer) => ({
      ...(routeTemplate === undefined ? {} : { routeTemplate }),
      info: { input: Object.fromEntries(members.map(([name, value]) => [name, value])), ...output },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          input: closed(Object.fromEntries(members.map(([name, , schema]) => [name, schema]))),
          ...(shown
            ? {
                output: {
                  type: 'object',
                  properties: { type: { type: 'string' }, example: answer },
                  required: ['type'],
                },
              }
            : {}),
        },
        required: ['input'],
      },
    })),
  );
  const last = made.at(-1);
  return made.find((form) => bytesOf(form) <= MOST_BYTES) ?? (last && withOpenSchema(last));
}

/** An object that has all of these members and no other. */
function closed(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function bytesOf(form: object): number {
  return Buffer.byteLength(JSON.stringify(form));
}

/** The schema if it can stand within another one, and `open` to replace it. */
function schemasOf(schema: JsonObject, open: JsonObject): readonly JsonObject[] {
  return BOUND_TO_ITS_ROOT.test(JSON.stringify(schema)) ? [open] : [schema, open];
}

function invokeForms(input: JsonObject, { inputSchema }: ListedResource): readonly Form[] {
  return schemasOf(inputSchema, OPEN).map((schema) => ({ members: [...http('POST'), ...body(input, schema)] }));
}

function inPlaceForms(input: JsonObject, config: ResourceConfig, { inputSchema }: ListedResource): readonly Form[] {
  const { backend } = config;
  const reading = readTemplate(backend.path);
  if (!reading.ok) return [];
  const { template } = reading;
  const declared = isObject(inputSchema['properties']) ? Object.keys(inputSchema['properties']) : [];
  const inQuery = queryProperties(backend, template, declared);
  const parts = inputParts(backend, template, input);
  const routeTemplate = routeTemplateOf(config);
  const inPath = template.parameters;
  return schemasOf(inputSchema, OPEN).map((schema) => {
    const inBody = partOf(schema, (name) => !inPath.includes(name) && !inQuery.includes(name));
    const query = partOf(schema, (name) => inQuery.includes(name));
    const path = partOf(schema, (name) => inPath.includes(name));
    const members: readonly Member[] = [
      ...http(backend.method),
      ...(carriesBody(backend.method) ? body(isObject(parts.body) ? parts.body : {}, inBody) : []),
      // Catalogues look here for the input of a method without a body, even if there is none.
      ...(carriesBody(backend.method) && inQuery.length === 0 ? [] : [['queryParams', parts.query, query] as const]),
      ...(inPath.length === 0 ? [] : [['pathParams', pick(input, inPath), path] as const]),
    ];
    return { routeTemplate, members };
  });
}

/** The schema of the arguments is a value here, so it may refer to its own root. */
function toolForms(input: JsonObject, name: string, { inputSchema }: ListedResource): readonly Form[] {
  return [inputSchema, OPEN].map((schema) => ({
    members: [
      ['type', 'mcp', { type: 'string', const: 'mcp' }],
      ['toolName', name, { type: 'string' }],
      ['inputSchema', schema, OPEN],
      ['example', input, OPEN],
    ],
  }));
}

function http(method: string): readonly Member[] {
  return [
    ['type', 'http', { type: 'string', const: 'http' }],
    ['method', method, { type: 'string', enum: [method] }],
  ];
}

function body(value: JsonObject, schema: JsonObject): readonly Member[] {
  return [
    ['bodyType', 'json', { type: 'string', enum: ['json'] }],
    ['body', value, schema],
  ];
}

/** The schema of those properties of an input that one part of a request holds. */
function partOf(schema: JsonObject, holds: (name: string) => boolean): JsonObject {
  const { properties, required } = schema;
  if (!isObject(properties)) return OPEN;
  const still = Array.isArray(required) ? required.filter((name) => typeof name === 'string' && holds(name)) : [];
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => holds(name))),
    ...(still.length === 0 ? {} : { required: still }),
    ...('additionalProperties' in schema ? { additionalProperties: schema['additionalProperties'] ?? true } : {}),
  };
}

/**
 * A path for all values of its parameters; undefined without any, or where no catalogue takes it.
 */
function routeTemplateOf({ address = '' }: ResourceConfig): string | undefined {
  const path = templatePath(address).replace(/^https?:\/\/[^/]+/i, '');
  const template = path.replace(PARAMETER, ':$1');
  return template !== path && ROUTE_TEMPLATE.test(template) ? template : undefined;
}
