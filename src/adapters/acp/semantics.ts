import { ACP_VERSION, type Operation } from '../../checkouts/operations.ts';
import { isObject } from '../../json/object.ts';
import type { JsonObject } from '../../json/types.ts';

/** What a valid document can say that contradicts itself or the call (acp.md 13.5); a closed list. */
const CONTRADICTIONS = ['session_id', 'order_session_id', 'not_canceled', 'authentication', 'version'] as const;
export type Contradiction = (typeof CONTRADICTIONS)[number];

/** Where each of them stands in the document. */
export const CONTRADICTION_PLACES: Readonly<Record<Contradiction, string>> = {
  session_id: '$.id',
  order_session_id: '$.order.checkout_session_id',
  not_canceled: '$.status',
  authentication: '$.authentication_metadata',
  version: '$.protocol.version',
};

/** Looks for them in a document that is valid by the schema. `sessionId`: of the call, undefined for create. */
export function contradictionsIn(
  document: JsonObject,
  operation: Operation,
  sessionId: string | undefined,
): readonly Contradiction[] {
  const { id, status, order, protocol } = document;
  const orderOf = isObject(order) ? order['checkout_session_id'] : id;
  const version = isObject(protocol) ? protocol['version'] : ACP_VERSION;
  const found: Readonly<Record<Contradiction, boolean>> = {
    session_id: sessionId !== undefined && id !== sessionId,
    order_session_id: orderOf !== id,
    not_canceled: operation === 'cancelCheckoutSession' && status !== 'canceled',
    authentication: status === 'authentication_required' && document['authentication_metadata'] === undefined,
    version: version !== ACP_VERSION,
  };
  return CONTRADICTIONS.filter((name) => found[name]);
}
