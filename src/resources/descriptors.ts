import type { Channel } from '../events/event.ts';
import { CONSTRAINTS } from '../mandates/ap2/verify/challenge.ts';

/** The wire contract this release speaks; changes only when the contract does. */
export const SUPPORTED_SPEC = 'agent-commerce/v1.0.0';

/** Interface specification, part 2: adapter descriptor. */
export interface Descriptor {
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

/** Messages that name a task of an earlier message: the one thing of A2A that an operator switches on. */
const CONTINUATION = 'continuation';

/** Constants of a release: nothing changes them at run time (contract 2). Only those of mounted adapters are published. */
export const PROTOCOL_ADAPTERS: Readonly<Record<Channel, Descriptor>> = {
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
    unsupported: ['streaming', 'push-notifications', 'task-persistence', 'multi-part-messages', CONTINUATION],
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

/** The A2A adapter with continuation switched on: a task may wait for its payment, as the x402 extension has it. */
export function continuing(a2a: Descriptor): Descriptor {
  const unsupported = a2a.unsupported?.filter((name) => name !== CONTINUATION) ?? [];
  return { ...a2a, capabilities: [...a2a.capabilities, CONTINUATION, 'x402-extension'], unsupported };
}

export const X402_PROVIDER: Descriptor = {
  name: 'x402',
  kind: 'payment',
  implementationVersion: '1.0.0',
  supportedSpec: 'x402/v2 scheme=exact family=eip155',
  capabilities: ['eip3009', 'settle-before-delivery', 'replay-protection', 'payment-identifier'],
  unsupported: ['permit2', 'upto', 'batch-settlement', 'auth-capture', 'bazaar', 'x402-v1', 'solana'],
  status: 'stable',
};

/** Mandates of the Agent Payments Protocol. */
export const AP2_PROVIDER: Descriptor = {
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

export const STORES: Readonly<Record<'redis' | 'sqlite', Descriptor>> = {
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
