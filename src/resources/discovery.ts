/** The discovery document: the services of this gateway, and the health of its adapters. */

import release from '../../package.json' with { type: 'json' };
import { KEY_SET_PATH } from '../crypto/signing-key.ts';
import type { Protocol } from '../events/event.ts';
import { CONSTRAINTS } from '../mandates/ap2/challenge.ts';
import { CHECKOUT_PROFILE } from '../mandates/ap2/checkout.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import type { CatalogueSettings, PublicMandateSettings } from './settings.ts';
import { type StaticDocument, staticDocument } from './static-document.ts';

/** The version of the wire contract that this release implements. */
const SUPPORTED_SPEC = 'agent-commerce/v1.0.0';

/** The adapter descriptor of the interface specification, part 2. */
interface Descriptor {
  readonly name: string;
  readonly kind: 'protocol' | 'payment' | 'storage' | 'authorization';
  /** Version of the adapter, independent of the specification it follows. */
  readonly implementationVersion: string;
  /** The exact pinned specification revision. */
  readonly supportedSpec: string;
  readonly capabilities: readonly string[];
  readonly unsupported?: readonly string[];
  readonly status: 'stable' | 'experimental' | 'planned';
}

/** Constants of a release (contract 2). Those of mounted adapters are published. */
const PROTOCOL_ADAPTERS: Readonly<Record<Protocol, Descriptor>> = {
  http: {
    name: 'http',
    kind: 'protocol',
    implementationVersion: '1.0.0',
    supportedSpec: SUPPORTED_SPEC,
    capabilities: ['list', 'invoke', 'stream-response', 'payment-header'],
    status: 'stable',
  },
  mcp: {
    name: 'mcp',
    kind: 'protocol',
    implementationVersion: '1.0.0',
    supportedSpec: '2026-07-28',
    capabilities: ['tools/list', 'tools/call', 'server/discover', '2025-11-25', '2025-06-18', '2025-03-26', 'x402'],
    unsupported: ['resources', 'prompts', 'sampling', 'elicitation', 'tasks', 'sessions', 'sse', 'batches'],
    status: 'stable',
  },
  a2a: {
    name: 'a2a',
    kind: 'protocol',
    implementationVersion: '1.0.0',
    supportedSpec: '1.0.0',
    capabilities: ['SendMessage', 'agent-card', 'x402'],
    unsupported: ['streaming', 'push-notifications', 'task-persistence', 'multi-part-messages', 'continuation'],
    status: 'experimental',
  },
  acp: {
    name: 'acp',
    kind: 'protocol',
    implementationVersion: '1.0.0',
    supportedSpec: '2026-04-17',
    capabilities: [
      'createCheckoutSession',
      'updateCheckoutSession',
      'getCheckoutSession',
      'completeCheckoutSession',
      'cancelCheckoutSession',
      'idempotency',
    ],
    unsupported: [
      'carts',
      'orders',
      'delegate_payment',
      'delegate_authentication',
      'feed',
      'mcp-binding',
      'webhooks',
      'request-signature-verification',
      'third-party-extensions',
    ],
    status: 'experimental',
  },
};

/** The descriptor of x402: its capabilities follow from the configuration. */
function x402Provider({ resources, signing }: Pick<CatalogueSettings, 'resources' | 'signing'>): Descriptor {
  const chosen: Readonly<Record<string, boolean>> = {
    'settle-after-answer': resources.some(({ pricing }) => pricing.type === 'fixed' && pricing.settle === 'after'),
    bazaar: resources.some(({ bazaar }) => bazaar !== undefined),
    'signed-offers': signing?.offers === true,
    'signed-receipts': signing !== undefined,
  };
  const names = Object.keys(chosen);
  return {
    name: 'x402',
    kind: 'payment',
    implementationVersion: '1.0.0',
    supportedSpec: 'x402/v2 scheme=exact family=eip155',
    capabilities: [
      ...['eip3009', 'settle-before-delivery', 'replay-protection', 'payment-identifier'],
      ...names.filter((name) => chosen[name] === true),
    ],
    unsupported: [
      ...['permit2', 'upto', 'batch-settlement', 'auth-capture', 'x402-v1', 'solana'],
      ...names.filter((name) => chosen[name] === false),
    ],
    status: 'stable',
  };
}

const AP2_PROVIDER: Descriptor = {
  name: 'ap2',
  kind: 'authorization',
  implementationVersion: '1.0.0',
  supportedSpec: 'ap2/v0.2.0 mode=direct,autonomous',
  capabilities: [
    'direct',
    'autonomous',
    'user-credential',
    'trusted-agent-provider',
    'mandate.checkout.1',
    'mandate.checkout.open.1',
    'mandate.payment.1',
    'mandate.payment.open.1',
    'checkout-challenge',
    'checkout-receipt',
    'x402-payer-binding',
    ...CONSTRAINTS,
  ],
  unsupported: ['cross-merchant budgets', 'token status lists', 'v0.1 mandates', 'mandate issuance', 'AP2 over ACP'],
  status: 'experimental',
};

const STORES: Readonly<Record<'redis' | 'sqlite', Descriptor>> = {
  redis: {
    name: 'redis',
    kind: 'storage',
    implementationVersion: '1.0.0',
    supportedSpec: 'redis/7.0',
    capabilities: ['atomic-transitions', 'replicas'],
    status: 'stable',
  },
  sqlite: {
    name: 'sqlite',
    kind: 'storage',
    implementationVersion: '1.0.0',
    supportedSpec: 'sqlite/3',
    capabilities: ['atomic-transitions'],
    unsupported: ['replicas'],
    status: 'stable',
  },
};

/** An adapter's last health check. `checkedAt` is ISO 8601. */
interface AdapterHealth {
  readonly status: 'pass' | 'warn' | 'fail';
  readonly checkedAt: string;
}

export type AdapterHealths = Partial<Readonly<Record<Protocol, AdapterHealth>>>;

/** How old a published `checkedAt` may grow while the status stays the same, milliseconds. */
export const HEALTH_REFRESH_MS = 30_000;
const PROTOCOLS: readonly Protocol[] = ['http', 'mcp', 'a2a', 'acp'];

/**
 * GET /.well-known/agent-commerce as a function of the adapters' health. Checks run every 2 s; if
 * each one were published, no client could revalidate. So the bytes and their strong ETag change
 * only when a status changes or `checkedAt` moves by 30 s or more; the published check did happen
 * at that time with that result. An adapter without a check is `warn` since the start.
 */
export function discoveryDocument(
  config: CatalogueSettings,
  startedAt: string,
): (health: AdapterHealths) => StaticDocument {
  const fixed = fixedParts(config);
  const mounted = PROTOCOLS.filter((channel) => config.protocols[channel].enabled);
  const unchecked: AdapterHealth = { status: 'warn', checkedAt: startedAt };
  let published: readonly AdapterHealth[] = [];
  let document: StaticDocument | undefined;
  return (health) => {
    const current = mounted.map((channel) => health[channel] ?? unchecked);
    if (document !== undefined && current.every((check, index) => isCurrent(published[index], check))) return document;
    published = current;
    const adapters = mounted.map((channel, index) => {
      const { status, checkedAt } = current[index] ?? unchecked;
      return { ...PROTOCOL_ADAPTERS[channel], health: { status, checkedAt } };
    });
    document = staticDocument({ ...fixed, adapters });
    return document;
  };
}

function isCurrent(published: AdapterHealth | undefined, current: AdapterHealth): boolean {
  if (published === undefined || published.status !== current.status) return false;
  if (published.checkedAt === current.checkedAt) return true;
  return Math.abs(Date.parse(current.checkedAt) - Date.parse(published.checkedAt)) < HEALTH_REFRESH_MS;
}

/** Everything but the adapters, field by field: no internal URL and no token is published. */
function fixedParts(config: CatalogueSettings): Readonly<Record<string, unknown>> {
  const { merchant, protocols, storage, x402, alternatives } = config;
  const { ap2 } = config.authorization;
  const mount = ({ enabled, mountPath }: { readonly enabled: boolean; readonly mountPath: string }) => ({
    enabled,
    mountPath,
  });
  return {
    gateway: { implementationVersion: release.version, supportedSpec: SUPPORTED_SPEC },
    merchant: { id: merchant.id, name: merchant.name, publicBaseUrl: merchant.publicBaseUrl },
    protocols: {
      http: { enabled: protocols.http.enabled },
      mcp: mount(protocols.mcp),
      a2a: mount(protocols.a2a),
      acp: mount(protocols.acp),
    },
    adapters: [],
    paymentProviders: x402 === undefined ? [] : [x402Provider(config)],
    authorizationProviders: ap2 === undefined ? [] : [AP2_PROVIDER],
    store: STORES[storage.engine.kind],
    payments: publicPayments(x402 === undefined ? [] : [x402, ...alternatives]),
    ...(ap2 === undefined ? {} : { authorization: { ap2: publicMandates(ap2, merchant.publicBaseUrl) } }),
  };
}

/** Facts that an agent needs to ask for a mandate, and to check checkouts and receipts. */
function publicMandates(
  { profile, issuers }: PublicMandateSettings,
  publicBaseUrl: string,
): Readonly<Record<string, unknown>> {
  return {
    enabled: true,
    profile: CHECKOUT_PROFILE,
    audience: profile.audience,
    algorithms: [...profile.algorithms],
    issuers: issuers.map(({ id }) => id),
    jwksUri: `${publicBaseUrl}${KEY_SET_PATH}`,
  };
}

/** The entries that are offered: the first as the specification has it, others beside it. */
function publicPayments(entries: readonly X402Config[]): Readonly<Record<string, unknown>> {
  const [first, ...others] = entries.filter(({ offered }) => offered).map(publicEntry);
  if (first === undefined) return {};
  return { x402: { enabled: true, ...first, ...(others.length > 0 ? { alternatives: others } : {}) } };
}

function publicEntry(x402: X402Config): Readonly<Record<string, unknown>> {
  return {
    network: x402.network,
    asset: x402.asset,
    assetName: x402.assetName,
    assetVersion: x402.assetVersion,
    assetDecimals: x402.assetDecimals,
    payTo: x402.payTo,
    maxTimeoutSeconds: x402.maxTimeoutSeconds,
    facilitator: { mode: x402.facilitator.mode },
    mode: x402.mode,
  };
}
