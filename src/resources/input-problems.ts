/** Explains to a caller why an input does not fit its schema, without repeating values of it. */

import type { ErrorObject } from 'ajv/dist/2020.js';
import type { InputProblem } from '../errors.ts';
import type { Json } from '../json/types.ts';

/** Most problems that one answer lists (contract 1.1). */
const MAX_INPUT_PROBLEMS = 20;
/** Longest message, characters; it may list values of the schema. */
const MAX_MESSAGE_LENGTH = 200;
/** Longest name of a member in a path, characters. */
const MAX_NAME_LENGTH = 64;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** The validator's errors in the contract's form: fixed phrases and parts of the schema. */
export function inputProblems(errors: readonly ErrorObject[], input: Json): readonly InputProblem[] {
  const problems = new Map<string, InputProblem>();
  for (const error of errors) {
    // These errors follow from another one, which is more specific.
    if (error.keyword === 'if' || (error.propertyName !== undefined && error.keyword !== 'propertyNames')) continue;
    const problem = explain(error, pathOf(error.instancePath, input));
    problems.set(`${problem.path} ${problem.keyword}`, problem);
    if (problems.size === MAX_INPUT_PROBLEMS) break;
  }
  return [...problems.values()];
}

function explain({ keyword, params, message }: ErrorObject, path: string): InputProblem {
  const at = (member: unknown, text: string): InputProblem => ({
    path: instancePath(path, String(member)),
    message: text,
    keyword,
  });
  switch (keyword) {
    case 'required':
      return at(params['missingProperty'], 'is required');
    case 'additionalProperties':
      return at(params['additionalProperty'], 'is not a property of this input');
    case 'unevaluatedProperties':
      return at(params['unevaluatedProperty'], 'is not a property of this input');
    case 'propertyNames':
      return at(params['propertyName'], 'is not a legal property name here');
    case 'enum':
      return { path, keyword, message: bounded(`must be one of ${allowed(params['allowedValues'])}`) };
    default:
      return { path, keyword, message: bounded(message ?? 'is not valid') };
  }
}

function allowed(values: unknown): string {
  return Array.isArray(values)
    ? values.map((value: unknown) => JSON.stringify(value)).join(', ')
    : 'the published values';
}

function bounded(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}

/** A JSON pointer in the contract's form; the input decides what is an index and what a name. */
function pathOf(pointer: string, input: Json): string {
  let path = '$';
  let value: Json | undefined = input;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) {
      path = instancePath(path, Number(name));
      value = (value as readonly Json[])[Number(name)];
    } else {
      path = instancePath(path, name);
      value =
        value !== null && typeof value === 'object' ? (value as { readonly [key: string]: Json })[name] : undefined;
    }
  }
  return path;
}

/** `$.a.b[0]`; other than plain names are quoted and long ones cut, so that a path is one line. */
export function instancePath(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  const name = member.slice(0, MAX_NAME_LENGTH).toWellFormed();
  return PLAIN_NAME.test(name) ? `${parent}.${name}` : `${parent}[${JSON.stringify(name)}]`;
}
