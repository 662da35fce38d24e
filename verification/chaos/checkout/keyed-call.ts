/** The checkout calls that the specs of deaths send. */

import { randomUUID } from 'node:crypto';
import { CART } from '../../../spec/adapters/acp/testbed.ts';
import { type Aim, aimed, type BackendCall } from '../../../spec/support/acp/checkout-backend.ts';
import { type KeyedOperation, OPERATION_RULES, OPERATIONS, SESSION_PLACE } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { type Ground, openSession } from './ground.ts';

/** A keyed checkout call: sent as often as needed, never changed. */
export interface KeyedCall {
  readonly operation: KeyedOperation;
  readonly sessionId: string | undefined;
  /** Below `/acp`. */
  readonly path: string;
  readonly key: string;
  readonly body: JsonObject;
  /** Matches its calls of the backend, and those of another call on the same session only. */
  readonly aim: Aim;
}

export const KEYED_OPERATIONS = OPERATIONS.filter((operation) => operation !== 'getCheckoutSession');

/** A new call, on a session of its own unless one is given. */
export async function callFor(
  { backend }: Pick<Ground, 'backend'>,
  operation: KeyedOperation,
  sessionId?: string,
): Promise<KeyedCall> {
  const key = randomUUID();
  if (operation === 'createCheckoutSession') {
    const item = `item_${key}`;
    const body = { ...CART, line_items: [{ id: item }] };
    return { operation, sessionId: undefined, path: pathOf(operation), key, body, aim: { operation, text: item } };
  }
  const id = sessionId ?? (await openSession(backend));
  return {
    operation,
    sessionId: id,
    path: pathOf(operation).replace(SESSION_PLACE, id),
    key,
    body: BODIES[operation],
    aim: { operation, sessionId: id },
  };
}

/** How often the backend was called for it. */
export function asked({ backend }: Ground, { aim }: KeyedCall): number {
  return count(backend.calls, aim);
}

/** How often its session was read. */
export function read({ backend }: Ground, { sessionId }: KeyedCall): number {
  return sessionId === undefined ? 0 : count(backend.calls, { operation: 'getCheckoutSession', sessionId });
}

function count(calls: readonly BackendCall[], aim: Aim): number {
  return calls.filter((call) => aimed(aim, call)).length;
}

function pathOf(operation: KeyedOperation): string {
  return OPERATION_RULES[operation].path;
}

const BODIES: Readonly<Record<Exclude<KeyedOperation, 'createCheckoutSession'>, JsonObject>> = {
  updateCheckoutSession: { line_items: [{ id: 'item_2' }] },
  completeCheckoutSession: {
    payment_data: {
      handler_id: 'card',
      instrument: { type: 'card', credential: { type: 'spt', token: 'tok_of_the_buyer' } },
    },
  },
  cancelCheckoutSession: { intent_trace: { reason_code: 'comparison' } },
};
