/** How the middleware answer for a store that does not answer them. */

import { GatewayError } from '../../errors.ts';
import { StoreError } from '../../store/port/store-error.ts';

/** For a `catch`: a StoreError becomes STORAGE_ERROR, everything else is thrown as it is. */
export function throwStorageError(thrown: unknown): never {
  throw thrown instanceof StoreError ? new GatewayError('STORAGE_ERROR', { cause: thrown }) : thrown;
}
