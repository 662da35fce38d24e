/**
 * The published schemas of ACP, compiled in one of three builds, strict or relaxed for callers.
 * compiled.ts uses this module from source, deploy/bundle/validators.ts for the code in the bundle.
 */

import { _, Ajv2020, type CodeOptions } from 'ajv/dist/2020.js';
import capabilities from '../../../../schemas/acp/2026-04-17/capabilities.schema.json' with { type: 'json' };
import common from '../../../../schemas/acp/2026-04-17/common.schema.json' with { type: 'json' };
import discovery from '../../../../schemas/acp/2026-04-17/discovery.schema.json' with { type: 'json' };
import error from '../../../../schemas/acp/2026-04-17/error.schema.json' with { type: 'json' };
import fulfillmentOption from '../../../../schemas/acp/2026-04-17/fulfillment-option.schema.json' with { type: 'json' };
import lineItem from '../../../../schemas/acp/2026-04-17/line-item.schema.json' with { type: 'json' };
import message from '../../../../schemas/acp/2026-04-17/message.schema.json' with { type: 'json' };
import money from '../../../../schemas/acp/2026-04-17/money.schema.json' with { type: 'json' };
import order from '../../../../schemas/acp/2026-04-17/order.schema.json' with { type: 'json' };
import request from '../../../../schemas/acp/2026-04-17/request.schema.json' with { type: 'json' };
import session from '../../../../schemas/acp/2026-04-17/session.schema.json' with { type: 'json' };
import { isObject, type Json, type JsonObject } from '../../../json/json.ts';
import { FORMATS } from '../../../resources/patterns/formats.ts';
import { linearRegExp } from '../../../resources/patterns/linear.ts';
import { hasEqualItems } from './equal-items.ts';
import type { Build, DocumentName } from './validator.ts';

/** The schemas by their file names, which the references between them use. */
export const SCHEMA_FILES: Readonly<Record<string, JsonObject>> = {
  'capabilities.schema.json': capabilities,
  'common.schema.json': common,
  'discovery.schema.json': discovery,
  'error.schema.json': error,
  'fulfillment-option.schema.json': fulfillmentOption,
  'line-item.schema.json': lineItem,
  'message.schema.json': message,
  'money.schema.json': money,
  'order.schema.json': order,
  'request.schema.json': request,
  'session.schema.json': session,
};

const FILE_OF: Readonly<Record<DocumentName, keyof typeof SCHEMA_FILES>> = {
  CheckoutSessionCreateRequest: 'request.schema.json',
  CheckoutSessionUpdateRequest: 'request.schema.json',
  CheckoutSessionCompleteRequest: 'request.schema.json',
  CancelSessionRequest: 'request.schema.json',
  CheckoutSession: 'session.schema.json',
  CheckoutSessionWithOrder: 'session.schema.json',
  DiscoveryResponse: 'discovery.schema.json',
  Error: 'error.schema.json',
};

/** Reference to the definition of a document. */
export function referenceTo(name: DocumentName): string {
  return `${FILE_OF[name]}#/$defs/${name}`;
}

/** One node of the published schemas at which a request may break the official schema. */
interface Relaxation {
  readonly file: string;
  /** Members that lead to the node. */
  readonly at: readonly string[];
  /** Keywords that do not apply to it. */
  readonly without?: readonly string[];
  /** Members that are added to it. */
  readonly and?: JsonObject;
}

/**
 * Why a request is accepted that the official schema refuses (acp 11). The first three are tags of
 * labelled documents (acp 14).
 */
const RELAXATIONS = {
  /** The RFC calls the list documentation, and an unusable trace must not stop a cancellation. */
  extensible_enum: {
    file: 'request.schema.json',
    at: ['$defs', 'IntentTrace', 'properties', 'reason_code'],
    without: ['enum'],
  },
  /** Servers must ignore a capability that they do not know. */
  rfc_ignore_unknown_capability: {
    file: 'capabilities.schema.json',
    at: ['$defs', 'InterventionCapabilities', 'properties', 'supported', 'items'],
    without: ['enum'],
  },
  /** An empty list is invalid only because both forms of the list match it. */
  empty_extensions: {
    file: 'capabilities.schema.json',
    at: ['$defs', 'Capabilities', 'properties', 'extensions'],
    without: ['minItems'],
  },
  /** The snapshot of the schema lacks the member, and agents send it. */
  item_quantity: {
    file: 'common.schema.json',
    at: ['$defs', 'Item', 'properties'],
    and: { quantity: { type: 'integer', minimum: 1 } },
  },
} as const satisfies Record<string, Relaxation>;
type RelaxationName = keyof typeof RELAXATIONS;

/** The relaxations of each build. */
export const RELAXED: Readonly<Record<Build, readonly RelaxationName[]>> = {
  strict: [],
  wire: ['extensible_enum', 'rfc_ignore_unknown_capability', 'empty_extensions'],
  'wire-quantity': ['extensible_enum', 'rfc_ignore_unknown_capability', 'empty_extensions', 'item_quantity'],
};

/**
 * A copy of a published schema for this build.
 * @throws Error where a relaxation finds no node in the schema
 */
export function relaxed(file: string, schema: JsonObject, build: Build): JsonObject {
  const relaxations: readonly Relaxation[] = RELAXED[build].map((name) => RELAXATIONS[name]);
  return relaxations.filter((one) => one.file === file).reduce((result, one) => changed(result, one, one.at), schema);
}

function changed(node: Json | undefined, relaxation: Relaxation, at: readonly string[]): JsonObject {
  const { file, without = [], and = {} } = relaxation;
  if (!isObject(node)) throw new Error(`${file} has no ${relaxation.at.join('/')} to relax`);
  const [name, ...rest] = at;
  if (name !== undefined) return { ...node, [name]: changed(node[name], relaxation, rest) };
  const missing = without.find((keyword) => node[keyword] === undefined);
  if (missing !== undefined) throw new Error(`${file} has no ${missing} at ${relaxation.at.join('/')} to relax`);
  return { ...Object.fromEntries(Object.entries(node).filter(([keyword]) => !without.includes(keyword))), ...and };
}

/**
 * Callers send the texts, so patterns and formats match in linear time, within the budget of the
 * document.
 */
const MATCHING = {
  regExp: Object.assign((pattern: string) => linearRegExp(pattern), {
    code: 'require("../../../resources/patterns/linear.ts").linearRegExp',
  }),
  formats: _`require("../../../resources/patterns/formats.ts").FORMATS`,
};

/**
 * The schemas of one build, to be compiled by reference. `code`: keeps source text for the bundle.
 */
export function createEngine(build: Build, code: CodeOptions = {}): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    // `anyOf` branches require what their parent declares.
    strictRequired: false,
    allowUnionTypes: true,
    discriminator: true,
    // One function for each definition, shared by all references to it: half of the code.
    inlineRefs: false,
    // validator.ts has the words.
    messages: false,
    code: { ...code, ...MATCHING },
  });
  for (const [name, test] of Object.entries(FORMATS)) ajv.addFormat(name, test);
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    code(cxt) {
      const test = { key: hasEqualItems, ref: hasEqualItems, code: _`require("./equal-items.ts").hasEqualItems` };
      if (cxt.schema === true) cxt.fail(_`${cxt.gen.scopeValue('func', test)}(${cxt.data})`);
    },
  });
  for (const [name, schema] of Object.entries(SCHEMA_FILES)) ajv.addSchema(relaxed(name, schema, build), name);
  return ajv;
}
