import assert from 'node:assert/strict';
import type { AcpSettings } from '../../../src/checkouts/settings.ts';
import { type Changes, load } from '../document/document.ts';

/** Path of the section. */
export const ACP = 'protocols.acp';
export const TOKEN = 'token-of-an-assistant';
export const SECRET = 'secret-of-this-shop-with-40-characters--';
export const KEY = Buffer.alloc(32, 1).toString('base64');
/** Where the keys are that kept answers are sealed with. */
export const KEYS = 'storage.sealing.keys';
const RING = [{ id: 'k1', key: KEY }];

/** The smallest configuration with a checkout, anew each time, and changes of it. */
export function selling(changes: Changes = {}): Changes {
  const idempotency = { secret: SECRET };
  return { [KEYS]: RING, [ACP]: { enabled: true, auth: { token: TOKEN }, idempotency }, ...changes };
}

/** Changes to a gateway that only this machine can reach. */
export const ON_TRIAL: Changes = {
  'merchant.publicBaseUrl': 'http://127.0.0.1:8402',
  payments: undefined,
  resources: {},
};

export function settings(changes: Changes = {}, env: Readonly<Record<string, string>> = {}): AcpSettings {
  const { acp } = load(selling(changes), env).protocols;
  assert.ok(acp.enabled);
  return acp;
}
