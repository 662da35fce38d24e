/**
 * The `bazaar` extension of x402 for one resource: how it is called by its invoke URL, at its own
 * address and as a tool, with an example. Catalogues of facilitators are made from it.
 */

import { isObject, type Json, type JsonObject } from '../json/types.ts';
import { withOpenSchema } from '../payments/x402/wire/challenge.ts';
import type { BazaarForms, Extension } from '../payments/x402/wire/types.ts';
import type { ConfigProblem } from '../problems/problem.ts';
import { carriesBody, inputParts, pick } from './backend-request.ts';
import type { ListedResource } from './listing.ts';
import type { Resource } from './resource.ts';
import { queryProperties } from './reverse-template.ts';
import type { CatalogueSettings, ResourceConfig } from './settings.ts';
import { readTemplate, templatePath } from './url-template.ts';

/**
 * Most bytes of one form. A 402 has 4 KiB of header for it and the offer, and clients echo it with
 * their proof.
 */
export const MOST_BYTES = 1_536;

/** JSON of a media type is an example as it stands; of any other type it is a text. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/i;
/** Keywords that mean something else, or nothing, within another schema. */
const BOUND_TO_ITS_ROOT = /"\$(?:ref|id|anchor|dynamicRef|dynamicAnchor|schema)":/;
/** What catalogues take: a name of a parameter, and the rest of a path. */
const PARAMETER = /\{([A-Za-z_]\w*)\}/g;
const ROUTE_TEMPLATE = /^\/[\w/:.\-~%]+$/;
const OPEN: JsonObject = { type: 'object' };

/** One member of `info.input` and its schema. */
type Member = readonly [name: string, value: Json, schema: JsonObject];

/** Where a form differs from the others. */
interface Form {
  readonly members: readonly Member[];
  readonly routeTemplate?: string | undefined;
}

/**
 * The forms of a resource whose configuration asks for them, or what is wrong; paths are
 * relative to the resource. `compiled`: judges the example, which must be an input.
 */
export function bazaarForms(
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
  const { description, mimeType } = config;
  return {
    about: { ...(description === undefined ? {} : { description }), mimeType },
    invoke,
    inPlace,
    tool: tool && { extension: tool, url: settings.merchant.publicBaseUrl + settings.protocols.mcp.mountPath },
  };
}

/**
 * The first form that is small enough, else the shortest: the schema of the answer goes first, that
 * of the input after it.
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

/** A schema as it can stand within another one, then what is there instead of it. */
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
      // Catalogues look for the input of such a method here, also where it has none.
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
