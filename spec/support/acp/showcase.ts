/** The checkout backend of `make run`, with commands to try it. */

import { randomBytes } from 'node:crypto';
import { ACP_VERSION } from '../../../src/checkouts/operations.ts';
import type { ConfigObject } from '../config.ts';
import { startCheckoutBackend } from './checkout-backend.ts';

/** The backend, and what a gateway and its first user need to use it. */
export interface CheckoutShowcase {
  readonly url: string;
  /** `protocols.acp` of a gateway before it. */
  readonly protocol: ConfigObject;
  /**
   * Commands that open a session, pay it and read it, each on its line: all they need is a shell
   * and the address of the gateway.
   */
  commands(baseUrl: string): readonly string[];
  stop(): Promise<void>;
}

const CART = { line_items: [{ id: 'socks' }], currency: 'eur', capabilities: {} };
const PAYMENT = {
  payment_data: {
    handler_id: 'card',
    instrument: { type: 'card', credential: { type: 'spt', token: 'tok_of_the_buyer' } },
  },
};
/**
 * The backend numbers its sessions; a repetition of the first command opens no second one.
 */
const FIRST_SESSION = 'cs_1';

/** Starts the merchant on a free port, with secrets of this run. */
export async function startCheckoutShowcase(): Promise<CheckoutShowcase> {
  const { url, stop } = await startCheckoutBackend();
  const [token, secret] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')];
  return {
    url,
    protocol: {
      enabled: true,
      auth: { token },
      backend: { baseUrl: url },
      idempotency: { secret },
      authenticationErrors: true,
    },
    commands: (baseUrl) => commands(`${baseUrl}/acp/checkout_sessions`, token),
    stop,
  };
}

function commands(sessions: string, token: string): readonly string[] {
  const who = `-H 'Authorization: Bearer ${token}' -H 'API-Version: ${ACP_VERSION}'`;
  const post = (path: string, key: string, body: object) =>
    `curl -si -w '\\n' '${sessions}${path}' ${who} -H 'Idempotency-Key: ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    post('', 'my-first-session', CART),
    post(`/${FIRST_SESSION}/complete`, 'my-first-payment', PAYMENT),
    `curl -s -w '\\n' '${sessions}/${FIRST_SESSION}' ${who}`,
  ];
}
