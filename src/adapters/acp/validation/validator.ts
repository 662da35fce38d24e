/** Validates documents of ACP against the published schemas; the adapter's way into this folder. */

import type { Json } from '../../../json/types.ts';
import { MatchBudgetError, withMatchBudget } from '../../../resources/patterns/budget.ts';
import { compiledOf } from './compiled.ts';
import { faultOf } from './fault.ts';
import { type Build, type DocumentName, type Fault, REQUEST_NAMES, type Validator } from './types.ts';

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
