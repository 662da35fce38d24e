import type { RequestListener } from 'node:http';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { startWorld, type World } from '../support/world.ts';
import { type SpanReceiver, startSpanReceiver } from './span-receiver.ts';

/** The credential that gateways send to the collector. */
export const CREDENTIAL = 'collector-credential-1';

/** A world whose gateways send their traces to a collector of the spec. */
export interface TracedWorld {
  readonly world: World;
  /** Starts a gateway, and the collector that it sends to; the caller stops both. */
  traced(
    answer?: RequestListener,
    env?: Readonly<Record<string, string>>,
  ): Promise<{ readonly gateway: GatewayProcess; readonly receiver: SpanReceiver }>;
  invoke(resource: string, input: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

export async function startTracedWorld(): Promise<TracedWorld> {
  const world = await startWorld({ overrides: { protocols: { mcp: { enabled: true } } } });
  // The world's own gateway has no collector; its configuration, chain and backend are used.
  await world.gateway.stop();
  return {
    world,
    async traced(answer, env = {}) {
      const receiver = await startSpanReceiver(answer);
      const gateway = await startGateway({
        configPath: world.configPath,
        baseUrl: world.gateway.baseUrl,
        env: {
          GATEWAY_DRAIN_SECONDS: '0',
          OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
          OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${CREDENTIAL}`,
          OTEL_SERVICE_NAME: 'market-shop-gateway',
          OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=shop-1',
          OTEL_BSP_SCHEDULE_DELAY: '50',
          ...env,
        },
      });
      return { gateway, receiver };
    },
    invoke: (resource, input, headers = {}) =>
      fetch(`${world.gateway.baseUrl}/api/resources/${resource}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(input),
      }),
  };
}
