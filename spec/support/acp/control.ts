import type { IncomingMessage, ServerResponse } from 'node:http';
import { EDITS, type Fault } from './faults.ts';
import type { Aim, CheckoutMerchant } from './merchant.ts';

/** A fault that fits into JSON. */
export type WrittenFault =
  | Exclude<Fault, { readonly kind: 'wait' | 'document' }>
  | { readonly kind: 'document'; readonly edit: keyof typeof EDITS };

/** What `POST /control/faults` takes. */
export interface Order {
  readonly fault: WrittenFault;
  readonly aim?: Aim;
  readonly times?: number;
}

/** What `GET /control/count/{session id}` answers. */
export interface Count {
  readonly posts: number;
  readonly completes: number;
  readonly orders: number;
}

/**
 * The merchant by remote control, for a merchant in a process of its own: `POST /control/faults`,
 * `GET /control/count/{session id}`, `POST /control/forget`. False: the request is for the shop.
 */
export function control(request: IncomingMessage, response: ServerResponse, merchant: CheckoutMerchant): boolean {
  const [, first, what, sessionId] = (request.url ?? '').split('/');
  if (first !== 'control') return false;
  if (what === 'faults') void misbehave(request, response, merchant);
  else if (what === 'forget') {
    merchant.forget();
    answer(response, 200, {});
  } else if (what === 'count' && sessionId !== undefined) {
    const id = decodeURIComponent(sessionId);
    const count: Count = {
      posts: merchant.posts(id),
      completes: merchant.posts(id, 'completeCheckoutSession'),
      orders: merchant.orders(id),
    };
    answer(response, 200, count);
  } else answer(response, 404, { error: 'control has faults, forget and count/{session id}' });
  return true;
}

async function misbehave(
  request: IncomingMessage,
  response: ServerResponse,
  merchant: CheckoutMerchant,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    const { fault, aim, times } = JSON.parse(Buffer.concat(chunks).toString()) as Order;
    merchant.misbehave(fault.kind === 'document' ? { kind: 'document', edit: EDITS[fault.edit] } : fault, aim, times);
    answer(response, 200, {});
  } catch (error) {
    answer(response, 400, { error: String(error) });
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
