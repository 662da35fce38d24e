import type { RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';

/** Ends a known path: whatever method comes this far is not served there. */
export function allowOnly(...methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return function methodNotAllowed() {
    throw new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow } });
  };
}
