/**
 * Validates documents of ACP against the published schemas, and names documents, builds and faults
 * for the rest of the adapter.
 */

import type { ErrorObject } from 'ajv/dist/2020.js';
import { isObject, type Json } from '../../../json/json.ts';
import { MatchBudgetError, withMatchBudget } from '../../../resources/patterns/linear.ts';
import { compiledOf } from './compiled.ts';

/** Bodies that callers send, by their names in the official schema. */
export const REQUEST_NAMES = [
  'CheckoutSessionCreateRequest',
  'CheckoutSessionUpdateRequest',
  'CheckoutSessionCompleteRequest',
  'CancelSessionRequest',
] as const;

/** Documents of answers. */
const ANSWER_NAMES = ['CheckoutSession', 'CheckoutSessionWithOrder', 'DiscoveryResponse', 'Error'] as const;

/** The documents of the checkout service, by their names in the official schema. */
export const DOCUMENT_NAMES = [...REQUEST_NAMES, ...ANSWER_NAMES] as const;
export type DocumentName = (typeof DOCUMENT_NAMES)[number];

export const BUILDS = ['strict', 'wire', 'wire-quantity'] as const;
/**
 * `strict`: the verdict of the official schema. `wire`: also accepts values of callers that the RFC
 * tells servers to ignore (acp 11): any `reason_code`, any capability in `interventions.supported`,
 * `extensions: []`. `wire-quantity`: also accepts a `quantity` of request items. Documents of
 * answers have the strict verdict in all builds.
 */
export type Build = (typeof BUILDS)[number];

/** The first fault found in a document. */
export interface Fault {
  /**
   * JSONPath of the member, `$.line_items[0].id`, at most 256 characters. A name outside
   * `[A-Za-z_][A-Za-z0-9_]{0,63}` ends it at the parent.
   */
  readonly param: string;
  /** Keyword of JSON Schema. */
  readonly keyword: string;
  /** The right form, without any value of the document: `is required`, `must be integer`. */
  readonly message: string;
}

/** Undefined: the document is valid. */
export type Validator = (document: Json) => Fault | undefined;

/** Only requests are ever relaxed: answers of the backend are held to the official schema. */
const RELAXABLE: ReadonlySet<DocumentName> = new Set(REQUEST_NAMES);

const TOO_MUCH_TEXT: Fault = {
  param: '$',
  keyword: 'maxLength',
  message: 'must not have so much text where patterns and formats apply',
};

const validators = new Map<string, Validator>();

/** The validator of a document in a build, compiled at its first use and kept. */
export function validatorOf(build: Build, name: DocumentName): Validator {
  const effective = RELAXABLE.has(name) ? build : 'strict';
  const key = `${effective} ${name}`;
  const validator = validators.get(key) ?? createValidator(effective, name);
  validators.set(key, validator);
  return validator;
}

function createValidator(build: Build, name: DocumentName): Validator {
  const compiled = compiledOf(build, name);
  return function validate(document: Json) {
    try {
      return withMatchBudget(() => compiled(document)) ? undefined : faultOf(compiled.errors ?? [], document);
    } catch (error) {
      if (error instanceof MatchBudgetError) return TOO_MUCH_TEXT;
      throw error;
    }
  };
}

/** Longest path, characters. */
const MAX_PARAM_LENGTH = 256;
/** Longest list of allowed values that a message repeats, characters. */
const MAX_LIST_LENGTH = 400;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** Keywords that only sum up other errors. */
const COMPOUND: ReadonlySet<string> = new Set(['anyOf', 'if', 'oneOf']);

/** One member and one phrase; only names and values of the schema vary in it. */
function faultOf(errors: readonly ErrorObject[], document: Json): Fault {
  const error = decisive(errors);
  const alternatives = alternativesOf(errors, error);
  const at = paramOf(pathOf(error), document);
  if (alternatives === undefined) return { param: at, keyword: error.keyword, message: phraseOf(error) };
  return { param: paramOf(error.instancePath, document), keyword: 'anyOf', message: `must have ${alternatives}` };
}

/** The deepest error: where a document fits none of several forms, it shows the intended form. */
function decisive(errors: readonly ErrorObject[]): ErrorObject {
  const [first, ...others] = errors.filter(({ keyword }) => !COMPOUND.has(keyword));
  if (first === undefined) throw new Error('a document was refused without an error that says why');
  return others.reduce((deepest, error) => (depthOf(error) > depthOf(deepest) ? error : deepest), first);
}

function depthOf(error: ErrorObject): number {
  return pathOf(error).split('/').length;
}

/** The members of which each form of an `anyOf` requires another; undefined for other faults. */
function alternativesOf(errors: readonly ErrorObject[], { instancePath, keyword }: ErrorObject): string | undefined {
  const last = errors.at(-1);
  if (keyword !== 'required' || last?.keyword !== 'anyOf' || last.instancePath !== instancePath) return undefined;
  return errors
    .flatMap(({ params }) => ('missingProperty' in params ? [String(params['missingProperty'])] : []))
    .join(' or ');
}

/** JSON pointer of the member that the error is about. */
function pathOf({ instancePath, keyword, params }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `${instancePath}/${escaped(params['missingProperty'])}`;
    case 'additionalProperties':
      return `${instancePath}/${escaped(params['additionalProperty'])}`;
    case 'discriminator':
      return `${instancePath}/${escaped(params['tag'])}`;
    default:
      return instancePath;
  }
}

function escaped(name: unknown): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * A JSON pointer as JSONPath; the document tells indexes from names. Ends where a name may be a
 * value.
 */
function paramOf(pointer: string, document: Json): string {
  let param = '$';
  let value: Json | undefined = document;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const isList = Array.isArray(value);
    if (!isList && !PLAIN_NAME.test(name)) return param;
    const longer: string = isList ? `${param}[${name}]` : `${param}.${name}`;
    if (longer.length > MAX_PARAM_LENGTH) return param;
    param = longer;
    value = isList ? (value as readonly Json[])[Number(name)] : isObject(value) ? value[name] : undefined;
  }
  return param;
}

function phraseOf({ keyword, params }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return 'is not a member of this object';
    case 'type':
      return `must be ${typesOf(params['type'])}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'enum':
      return oneOf(params['allowedValues']);
    case 'discriminator':
      return params['error'] === 'tag' ? 'must be string' : 'must be the name of one of the forms';
    case 'format':
      return `must be in the format ${params['format']}`;
    case 'pattern':
      return `must match ${params['pattern']}`;
    case 'minimum':
    case 'maximum':
      return `must be ${params['comparison']} ${params['limit']}`;
    case 'minLength':
      return `must have at least ${params['limit']} characters`;
    case 'maxLength':
      return `must have at most ${params['limit']} characters`;
    case 'minItems':
      return `must have at least ${params['limit']} items`;
    case 'uniqueItems':
      return 'must not have equal items';
    default:
      return 'does not match the schema';
  }
}

function typesOf(type: unknown): string {
  return Array.isArray(type) ? type.join(' or ') : String(type);
}

function oneOf(values: unknown): string {
  const list = Array.isArray(values) ? values.map((value: unknown) => JSON.stringify(value)).join(', ') : '';
  return list === '' || list.length > MAX_LIST_LENGTH ? 'must be one of the allowed values' : `must be one of ${list}`;
}
