/** Makes the resource of one operation: its input, and how the input becomes the request. */

import { type BackendRequest, NONE_RELAYED } from '../../src/backend/backend-exchange.ts';
import type { WrittenResource } from '../../src/config/document/document.ts';
import { lowerHeaders } from '../../src/config/sections/backend.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { ProblemList } from '../../src/problems/problem.ts';
import { carriesBody } from '../../src/resources/backend-request.ts';
import { resourceFaults } from '../../src/resources/check.ts';
import { createCompiler } from '../../src/resources/schemas/ajv.ts';
import { closeSchema } from '../../src/resources/schemas/closed-objects.ts';
import { subschemas } from '../../src/resources/schemas/keywords.ts';
import type { PairStyle } from '../../src/resources/url-template.ts';
import { type Body, bodyOf } from './body.ts';
import { withDefinitions } from './definitions.ts';
import { essenceOf, isJson } from './media-types.ts';
import { textsOf } from './naming.ts';
import { listed, type Operation } from './operations.ts';
import { type InputParameter, parametersOf } from './parameters.ts';
import { priceOf } from './prices.ts';
import { type Documents, Inexpressible, resolved } from './references.ts';
import type { LeftOut, SchemaReader } from './schemas.ts';
import { serverPath } from './servers.ts';

export interface ResourceOptions {
  /** Price of operations without `x-price`, display units; undefined: free. */
  readonly price: string | undefined;
  readonly currency: string;
  /** Whether operations that need credentials are made resources all the same. */
  readonly ignoreSecurity: boolean;
  /** Stands before every path; undefined: that of the document's server. */
  readonly basePath: string | undefined;
  readonly expose: readonly ('http' | 'mcp' | 'a2a' | 'origin')[];
  /** Names of the headers that the configuration sends to its backend. */
  readonly headers?: readonly string[] | undefined;
}

interface MadeResource {
  readonly resource: WrittenResource;
  readonly leftOut: readonly LeftOut[];
}

const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'DELETE',
  'POST',
  'PUT',
  'PATCH',
] satisfies BackendRequest['method'][]);
/** Most names in one list of bindings. */
const MAX_BOUND = 256;
/** Deepest nesting within a resource, levels: the configuration has 64, two of them above it. */
const MAX_LEVELS = 60;
const FAILING = ['patternProperties', 'minContains', 'maxContains', 'if', 'then', 'else', 'unevaluatedItems'];
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}$/;

/** `compile` is that of one import, which keeps what it has compiled. */
export function resourceMaker(
  documents: Documents,
  root: JsonObject,
  reader: SchemaReader,
  options: ResourceOptions,
): (operation: Operation) => MadeResource {
  const compile = createCompiler();
  const sent = new Set((options.headers ?? []).map((name) => name.toLowerCase()));
  const schemes = isObject(root['components']) ? root['components']['securitySchemes'] : undefined;
  /** Whether the configuration sends what a scheme asks callers for. */
  const isSent = (name: string): boolean => {
    const scheme = isObject(schemes) ? schemes[name] : undefined;
    const { type, in: where, name: header } = isObject(scheme) ? scheme : {};
    if (type === 'apiKey') return where === 'header' && typeof header === 'string' && sent.has(header.toLowerCase());
    return (type === 'http' || type === 'oauth2' || type === 'openIdConnect') && sent.has('authorization');
  };

  /** @throws Inexpressible with the reason to skip it */
  return function resourceOf(operation) {
    const { place, method } = operation;
    if (!isMethod(method))
      throw new Inexpressible(`has the method ${method}, which no resource has: use ${[...METHODS].join(', ')}`);
    if (!options.ignoreSecurity) checkSecurity(place.value['security'] ?? root['security'], isSent);
    const pricing = priceOf(place.value['x-price'], options.price, options.currency);
    const mimeType = answerOf(documents, operation);
    const {
      path: template,
      inputs,
      headers,
      leftOut,
    } = parametersOf(documents, operation, reader, {
      ignoreSecurity: options.ignoreSecurity,
      headers: sent,
      isPriced: pricing.type === 'fixed',
    });
    const { body, leftOut: ofBody } = bodyOf(documents, operation, reader);
    const path = (options.basePath ?? serverPath(root['servers'], operation.servers)) + encoded(template);
    const { schema, bindings } = oneInput(inputs, body, method);
    const resource: WrittenResource = {
      ...textsOf(operation),
      ...(schema === undefined ? {} : { inputSchema: withDefinitions(schema, reader.names) }),
      ...(mimeType === undefined ? {} : { mimeType }),
      backend: {
        method,
        path,
        ...(Object.keys(headers).length === 0 ? {} : { headers }),
        ...(body === undefined || body.contentType === 'application/json' ? {} : { contentType: body.contentType }),
        ...(bindings === undefined ? {} : { inputBindings: bindings }),
      },
      pricing,
      ...(options.expose.length === 0 ? {} : { expose: options.expose }),
    };
    check(resource, compile);
    return { resource, leftOut: [...leftOut, ...ofBody] };
  };
}

/** What a URL does not have as it stands is percent-encoded, but for the names of parameters. */
function encoded(path: string): string {
  return path.replaceAll(/\{[^{}]*\}|[^\x21-\x7e]+/g, (part) =>
    part.startsWith('{') ? part : encodeURIComponent(part),
  );
}

function isMethod(method: string): method is BackendRequest['method'] {
  return METHODS.has(method);
}

/** An empty requirement is one without credentials. */
function checkSecurity(security: Json | undefined, isSent: (scheme: string) => boolean): void {
  const requirements = listed(security).filter((one) => isObject(one));
  if (requirements.length === 0 || requirements.some((one) => Object.keys(one).every(isSent))) return;
  const names = [...new Set(requirements.flatMap((one) => Object.keys(one)))];
  throw new Inexpressible(
    `needs credentials of the caller (${names.slice(0, 4).join(', ')}): put them under backend.headers of the configuration, and add --ignore-security`,
  );
}

/** The media type of a successful answer; undefined for JSON. @throws Inexpressible without one */
function answerOf(documents: Documents, { place }: Operation): string | undefined {
  const { responses } = place.value;
  if (!isObject(responses)) return undefined;
  const statuses = Object.keys(responses).filter((status) => !status.startsWith('x-'));
  const good =
    statuses.find((status) => /^2(?:\d\d|XX)$/i.test(status)) ?? statuses.find((status) => status === 'default');
  if (good === undefined && statuses.length > 0)
    throw new Inexpressible(
      statuses.some((status) => status.startsWith('3'))
        ? `answers with a redirect (${statuses.find((status) => status.startsWith('3'))}), which is not followed: sell what it leads to`
        : 'names no answer of success: add the response 200',
    );
  if (good === undefined) return undefined;
  try {
    const { value } = resolved(documents, { file: place.file, value: responses[good] ?? null }, 'an answer');
    const types = Object.keys(isObject(value['content']) ? value['content'] : {});
    const [first] = types.map(essenceOf);
    return first === undefined || types.some(isJson) || !MEDIA_TYPE.test(first) || first.includes('*')
      ? undefined
      : first;
  } catch (error) {
    if (error instanceof Inexpressible) return undefined;
    throw error;
  }
}

/** Parameters and body as one object, and the bindings where they are not the usual ones. */
function oneInput(
  parameters: readonly InputParameter[],
  body: Body | undefined,
  method: BackendRequest['method'],
): {
  readonly schema: JsonObject | undefined;
  readonly bindings: WrittenResource['backend']['inputBindings'];
} {
  const names = parameters.map(({ name }) => name);
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const spread = body === undefined ? undefined : membersOf(body, names);
  const whole = body === undefined || spread !== undefined ? undefined : freeName('body', names);
  const members = spread ?? (whole === undefined || body === undefined ? {} : { [whole]: body.schema });
  const properties = { ...Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])), ...members };
  const required = [
    ...parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...(spread === undefined ? [] : listed(body?.schema['required'])),
    ...(whole !== undefined && body?.required === true ? [whole] : []),
  ];
  const styles = new Map<string, PairStyle>(body?.styles ?? []);
  for (const { name, style } of query) if (style !== undefined) styles.set(name, style);
  const usual = carriesBody(method)
    ? query.length === 0 && spread !== undefined && styles.size === 0
    : styles.size === 0;
  const bindings = {
    ...(query.length === 0 ? {} : { query: query.map(({ name }) => name) }),
    ...(whole !== undefined ? { body: whole } : spread === undefined ? {} : { body: Object.keys(spread) }),
    ...(styles.size === 0 ? {} : { styles: Object.fromEntries(styles) }),
  };
  return {
    schema:
      Object.keys(properties).length === 0
        ? undefined
        : { type: 'object', properties, ...(required.length === 0 ? {} : { required }) },
    bindings: usual ? undefined : bindings,
  };
}

/**
 * The members of a body that can stand beside the parameters; undefined where the body is more than
 * its members, may be absent as a whole, or has a name that the parameters have too.
 */
function membersOf({ schema, required }: Body, taken: readonly string[]): JsonObject | undefined {
  const { type, properties, required: needed, description: _description, deprecated: _deprecated, ...rest } = schema;
  const { additionalProperties = false, ...more } = rest;
  if (type !== 'object' || !isObject(properties) || additionalProperties !== false || Object.keys(more).length > 0)
    return undefined;
  const names = Object.keys(properties);
  if (names.length > MAX_BOUND || names.some((name) => taken.includes(name) || name.length > 128)) return undefined;
  return required || listed(needed).length === 0 ? properties : undefined;
}

function freeName(name: string, taken: readonly string[]): string {
  let free = name;
  for (let next = 2; taken.includes(free); next += 1) free = `${name}_${next}`;
  return free;
}

/** The rules of the configuration for this resource alone. @throws Inexpressible */
function check(resource: WrittenResource, compile: ReturnType<typeof createCompiler>): void {
  const { name, description, inputSchema, backend, pricing } = resource;
  if (hasPlaceholder({ ...resource, name: '', description: '' }))
    throw new Inexpressible('has a text with ${, which a configuration replaces: write it otherwise');
  if (levelsOf(resource) > MAX_LEVELS)
    throw new Inexpressible(`is nested deeper than ${MAX_LEVELS} levels: leave out what agents do not need`);
  const bindings = backend.inputBindings;
  const [fault] = resourceFaults({
    ...{ id: '', name, description, inputSchema, outputSchema: undefined, mimeType: 'application/json', labels: {} },
    backend: {
      ...{
        method: backend.method,
        path: backend.path,
        headers: {},
        contentType: backend.contentType ?? 'application/json',
      },
      inputBindings: bindings && {
        path: [...backend.path.matchAll(/\{([^{}]*)\}/g)].map(([, parameter = '']) => parameter),
        query: bindings.query ?? [],
        body: bindings.body ?? [],
        styles: new Map(Object.entries(bindings.styles ?? {})),
      },
      ...{ timeoutMs: 1, maxResponseBytes: 1, idempotent: false, relayStatuses: NONE_RELAYED, strictQuery: false },
    },
    pricing: pricing.type === 'free' ? pricing : { type: 'fixed', amount: '', currency: '', units: 1n },
    ...{ exposedVia: [], paymentMethods: [], authorization: [], bazaar: undefined },
    address: resource.expose?.includes('origin') === true ? backend.path : undefined,
  });
  if (fault !== undefined)
    throw new Inexpressible(`has ${inItsWords(fault.path, backend.path)}, which ${fault.message}`);
  const problems = new ProblemList();
  lowerHeaders(backend.headers ?? {}, 'backend.headers', problems);
  if (!problems.sound('backend.headers'))
    throw new Inexpressible('needs a header that the gateway sets itself: leave it out');
  if (inputSchema === undefined) return;
  if (!mayFail(inputSchema)) return;
  try {
    compile(closeSchema(inputSchema));
  } catch (error) {
    throw new Inexpressible(`has a schema that does not compile: ${error instanceof Error ? error.message : ''}`);
  }
}

/** A place of the resource in the words of an OpenAPI document. */
function inItsWords(place: string, path: string): string {
  return place
    .replace(/^backend\.path$/, `the path ${path}`)
    .replace(/^backend\.inputBindings\.(?:styles\.)?/, 'the parameters in ')
    .replace(/^inputSchema\.properties\./, 'the input ')
    .replace(/^inputSchema\b/, 'the input');
}

/** Whether a schema has a keyword that the validator refuses beside others, or without them. */
function mayFail(schema: Json): boolean {
  if (!isObject(schema)) return false;
  return FAILING.some((keyword) => keyword in schema) || subschemas(schema).some((inner) => mayFail(inner.schema));
}

function hasPlaceholder(value: Json | object): boolean {
  if (typeof value === 'string') return value.includes('${');
  return typeof value === 'object' && value !== null && Object.values(value).some(hasPlaceholder);
}

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce<number>((most, inner) => Math.max(most, levelsOf(inner)), 0);
}
