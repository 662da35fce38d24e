import { GatewayError } from '../../errors.ts';
import { StoreError } from '../../store/port/store.ts';

/**
 * For a `catch`: a store that gave no answer is told as such, and whatever else was thrown stays
 * what it is.
 */
export function throwStorageError(thrown: unknown): never {
  throw thrown instanceof StoreError ? new GatewayError('STORAGE_ERROR', { cause: thrown }) : thrown;
}
