import type { KeyedOperation, Operation } from '../../checkouts/operations.ts';
import type { Json } from '../../json/types.ts';
import { AcpError } from './error.ts';
import type { Build, DocumentName, Validator } from './validation/types.ts';
import { validatorOf } from './validation/validator.ts';

/** What each operation is given. */
const REQUESTS: Readonly<Record<KeyedOperation, DocumentName>> = {
  createCheckoutSession: 'CheckoutSessionCreateRequest',
  updateCheckoutSession: 'CheckoutSessionUpdateRequest',
  completeCheckoutSession: 'CheckoutSessionCompleteRequest',
  cancelCheckoutSession: 'CancelSessionRequest',
};

/**
 * Holds request bodies to the schema of their operation; the result throws AcpError
 * invalid_request_body, with the place of the first fault. The schemas are compiled here, and not
 * under the first call.
 */
export function requestSchemas(build: Build): (operation: Operation, body: Json) => void {
  const validators = new Map<string, Validator>(
    Object.entries(REQUESTS).map(([operation, name]) => [operation, validatorOf(build, name)]),
  );
  return function checkBody(operation, body) {
    const fault = validators.get(operation)?.(body);
    if (fault === undefined) return;
    const { param, message } = fault;
    throw new AcpError('invalid_request_body', {
      param,
      message: `The body does not match the schema of this operation: ${param} ${message}.`,
    });
  };
}

/** What the merchant answers. */
const ANSWERS: readonly DocumentName[] = ['CheckoutSession', 'CheckoutSessionWithOrder', 'Error'];

/**
 * Compiles what answers are held to: under the first of them it would keep all other calls waiting.
 */
export function compileAnswerSchemas(): void {
  for (const name of ANSWERS) validatorOf('strict', name);
}
