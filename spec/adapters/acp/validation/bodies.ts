import type { JsonObject } from '../../../../src/json/types.ts';
import { VECTORS } from './vectors/documents.ts';

export const ITEM = { id: 'item_123' };
/** The smallest answer. */
export const SESSION = VECTORS.CheckoutSession.least as JsonObject;

/** The smallest body of create, with these changes. */
export function createWith(changes: JsonObject): JsonObject {
  return { ...(VECTORS.CheckoutSessionCreateRequest.least as JsonObject), line_items: [ITEM], ...changes };
}
