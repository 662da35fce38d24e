/** What pods live among: a Redis, a facilitator whose word counts, and two images. */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { NO_CHAIN } from '../../spec/support/config.ts';
import { OPERATOR_TOKEN } from '../../spec/support/gateway.ts';
import { INVENTED_TRANSACTION, startHostileFacilitator } from '../../spec/support/hostile-facilitator.ts';
import { startRedis } from '../../spec/support/redis.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type Service, startService } from './deployment.ts';
import type { Image, NodeParts } from './node.ts';

/** How long a settlement takes, milliseconds. */
const SETTLE_MS = 120;
/** What a call may take longer than its merchant says, on a busy machine, milliseconds. */
const SPARE_MS = 2_000;
/** The image of the merchant. */
export const MERCHANT_IMAGE = 'merchant:1';
export const MERCHANT = 'merchant';
export const MERCHANT_PORT = 8_080;

const PROJECT = join(import.meta.dirname, '../..');
const NETWORK = `eip155:${NO_CHAIN.chainId}`;

export interface PodWorld {
  readonly node: NodeParts;
  readonly service: Service;
  /** Nonces of the authorizations whose money moved. */
  readonly settled: ReadonlySet<string>;
  close(): Promise<void>;
}

/**
 * `slowestMs`: how long a call may take. `merchant`: another image of the merchant, for example one
 * that starts late.
 */
export async function openPodWorld({
  slowestMs,
  merchant = merchantImage(() => 0),
}: {
  readonly slowestMs: number;
  readonly merchant?: Image;
}): Promise<PodWorld> {
  const ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-pods-');
  const [redis, facilitator, service] = await Promise.all([
    startRedis(),
    startHostileFacilitator(NETWORK),
    startService(),
  ]);
  for (const part of [redis, facilitator, service]) ends.defer(() => part.stop());
  const settled = new Set<string>();
  facilitator.script({
    async settle({ body }) {
      await delay(SETTLE_MS);
      const { nonce, from } = authorizationIn(body);
      settled.add(nonce);
      return {
        kind: 'json',
        body: { success: true, transaction: INVENTED_TRANSACTION, network: NETWORK, payer: from },
      };
    },
  });
  return {
    ...{ service, settled },
    node: {
      images: { [USUAL_OPTIONS.image]: gatewayImage, [MERCHANT_IMAGE]: merchant },
      configMaps: {
        [USUAL_OPTIONS.configMap]: {
          'gateway.yaml': configuration(service.url, facilitator.url, slowestMs + SPARE_MS),
        },
      },
      secrets: { [USUAL_OPTIONS.secret]: { ADMIN_TOKEN: OPERATOR_TOKEN, REDIS_URL: redis.url } },
      directory,
    },
    close: () => ends.disposeAsync(),
  };
}

function authorizationIn(body: unknown): { readonly nonce: string; readonly from: string } {
  const { paymentPayload } = body as {
    readonly paymentPayload: { readonly payload: { readonly authorization: ReturnType<typeof authorizationIn> } };
  };
  return paymentPayload.payload.authorization;
}

/** The bundle where one is named, as the image has it, else the sources. */
const gatewayImage: Image = ({ args = [] }) => ({
  args: [process.env['GATEWAY_ENTRY'] ?? join(PROJECT, 'src/main.ts'), ...args],
});

/** The merchant that listens only after this long, by how often it was started before. */
export function merchantImage(listensAfterMs: (start: number) => number): Image {
  return ({ ports = [] }, start) => ({
    args: [
      join(import.meta.dirname, 'merchant-main.ts'),
      String(ports[0]?.containerPort),
      String(listensAfterMs(start)),
    ],
  });
}

/** The pod of a merchant before injection, with a probe of each kind that it needs. */
export function merchantPod(): Pod {
  const healthz = { path: '/healthz', port: 'http' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'market-shop', namespace: 'shop', labels: { 'agent-commerce.dev/inject': 'enabled' } },
    spec: {
      containers: [
        {
          ...{ name: MERCHANT, image: MERCHANT_IMAGE, ports: [{ name: 'http', containerPort: MERCHANT_PORT }] },
          startupProbe: { httpGet: healthz, periodSeconds: 1, failureThreshold: 60 },
          readinessProbe: { httpGet: healthz, periodSeconds: 1, timeoutSeconds: 5 },
          livenessProbe: { httpGet: healthz, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 2 },
        },
      ],
      terminationGracePeriodSeconds: 30,
    },
  };
}

function configuration(publicBaseUrl: string, facilitatorUrl: string, timeoutMs: number): string {
  const sold = (name: string, method: string, path: string): object => ({
    name,
    backend: { method, path, timeoutMs },
    pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD' },
    expose: ['http', 'origin'],
    inputSchema: {
      ...{ type: 'object', properties: { wait: { type: 'string', pattern: '^[0-9]{1,5}$' } } },
      ...{ required: ['wait'], additionalProperties: false },
    },
  });
  return stringify({
    version: 1,
    merchant: { id: 'market-shop', name: 'Market Shop', publicBaseUrl },
    server: { host: '127.0.0.1', port: USUAL_OPTIONS.ports.agents },
    management: { host: '127.0.0.1', port: USUAL_OPTIONS.ports.management },
    backend: { baseUrl: 'http://127.0.0.1:3000' },
    storage: { redis: { url: 'redis://127.0.0.1:1' } },
    payments: {
      x402: {
        network: NETWORK,
        asset: NO_CHAIN.token.address,
        ...{ assetName: NO_CHAIN.token.name, assetVersion: NO_CHAIN.token.version, assetDecimals: 6 },
        ...{ currency: 'TUSD', payTo: `0x${'2'.repeat(40)}`, payToExclusive: true },
        facilitator: { mode: 'remote', url: facilitatorUrl, auth: { type: 'none' } },
      },
    },
    resources: { report: sold('Report', 'GET', '/reports/{wait}'), order: sold('Order', 'POST', '/orders/{wait}') },
  });
}
