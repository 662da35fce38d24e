/** A gateway in this process, wired as the command `serve` wires it. */

import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { createGateway, type Gateway } from '../../src/app/gateway.ts';
import { openHooks, stepsOfDrain } from '../../src/app/open-pod-hooks.ts';
import type { CheckoutClaims } from '../../src/checkouts/claim-table.ts';
import type { GatewayConfig } from '../../src/config/document/config.ts';
import { parseConfig } from '../../src/config/load.ts';
import { createRails } from '../../src/payments/x402/create-rails.ts';
import { entriesIn } from '../../src/payments/x402/wire/settings.ts';
import { createListener } from '../../src/server/listener/listen.ts';
import type { AppProbeSettings } from '../../src/sidecar/app-probe-settings.ts';
import type { PodHooks } from '../../src/sidecar/pod-hooks.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openStore } from '../../src/store/open.ts';
import { createLog, type Log, refusalLog } from '../../src/telemetry/log/log.ts';
import { type ConfigObject, type WorldParts, worldConfig } from './config.ts';

/** The operator token of every gateway of specs: a test value. */
export const OPERATOR_TOKEN = 'operator-token-of-the-tests';

/** The two apps of a gateway, which do not listen: for supertest. */
export interface TestApps extends Pick<Gateway, 'agents' | 'management' | 'lifecycle' | 'fence' | 'metrics'> {
  readonly config: GatewayConfig;
  readonly store: Store;
  /** Puts the configuration into use that these overrides make of the first one. */
  reload(overrides: ConfigObject): void;
  /** Log lines so far, as JSON. */
  readonly logLines: readonly string[];
  close(): Promise<void>;
}

/** A running gateway, on ports of its own. */
export interface TestGateway extends Omit<TestApps, 'agents' | 'management' | 'lifecycle'> {
  readonly url: string;
  readonly managementUrl: string;
  /** GET with the operator token. */
  operator(path: string): Promise<Response>;
  /** POST the input of a resource. */
  invoke(resourceId: string, input?: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Drains without new calls; what still runs after `finishMs` is ended. */
  drain(finishMs: number): Promise<void>;
  /** Where the process is in its lifecycle. */
  state(): ReturnType<Gateway['lifecycle']['state']>;
}

export type TestGatewayParts = Omit<WorldParts, 'ports' | 'storage'> & {
  readonly storage?: WorldParts['storage'];
  /**
   * How busy the load shedder sees the event loop; default: not at all. The buyers, the merchant
   * and the node of a test keep the same loop busy, and calls that no rule refuses would get 503.
   */
  readonly busy?: () => number;
  /** Probes of the merchant's container that the management app repeats. */
  readonly appProbes?: AppProbeSettings;
  /** Replaces the claims of checkouts of the store. */
  readonly checkouts?: CheckoutClaims;
  /** What the hooks of apps that do not listen start; nothing unless given. */
  readonly hooks?: PodHooks;
  /** How long a drained gateway waits for its signal before it opens again. */
  readonly signalComesMs?: number;
};

const NO_HOOKS: PodHooks = { drain: async () => undefined, release: async () => undefined };

/** Wires a gateway that does not listen; default storage: SQLite in memory. */
export async function openApps(parts: TestGatewayParts): Promise<TestApps> {
  return openParts(parts);
}

/** Opens a gateway; default storage: SQLite in memory. */
export async function openGateway(parts: TestGatewayParts): Promise<TestGateway> {
  const {
    agents: app,
    management: managementApp,
    lifecycle,
    fence,
    exchanges,
    loadShedder,
    relay,
    log,
    ...rest
  } = await openParts({ ...parts, hooks: { drain: () => hooks.drain(), release: () => hooks.release() } });
  const onRefused = refusalLog(log);
  const agents = createListener({ app, closing: () => lifecycle.draining(), onRefused, loadShedder, relay });
  const management = createListener({ app: managementApp, onRefused });
  let finishMs = 30_000;
  const hooks = openHooks({
    ...{ config: rest.config, gateway: { lifecycle, fence, exchanges }, log },
    listenAgain: () => agents.listen('127.0.0.1', port),
    drainSteps: () => stepsOfDrain({ propagationMs: 0, finishMs }, { exchanges }, agents, log),
    backendPreStop: undefined,
    merchantGraceMs: 30_000,
    podGraceMs: 60_000,
    ...(parts.signalComesMs === undefined ? {} : { signalComesMs: parts.signalComesMs }),
  });
  const { port } = await agents.listen('127.0.0.1', 0);
  const managementPort = (await management.listen('127.0.0.1', 0)).port;
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ ...rest, fence },
    url,
    managementUrl: `http://127.0.0.1:${managementPort}`,
    operator: (path) => fetch(`${url}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } }),
    invoke: (resourceId, input = {}, headers = {}) =>
      fetch(`${url}/api/resources/${resourceId}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(input),
      }),
    drain(atMostMs) {
      finishMs = atMostMs;
      return hooks.drain();
    },
    state: () => lifecycle.state(),
    async close() {
      hooks.stop();
      agents.stop();
      management.stop();
      agents.destroy();
      management.destroy();
      await rest.close();
    },
  };
}

async function openParts({
  busy = () => 0,
  checkouts,
  appProbes = {},
  hooks = NO_HOOKS,
  signalComesMs: _signalComesMs,
  ...parts
}: TestGatewayParts): Promise<
  TestApps & Pick<Gateway, 'loadShedder' | 'relay' | 'fence' | 'exchanges'> & { readonly log: Log }
> {
  const storage = parts.storage ?? { sqlite: { path: ':memory:' } };
  const ports = { agents: 8402, management: 8403 };
  const payTo = parts.payTo ?? privateKeyToAddress(generatePrivateKey());
  const first = { adminToken: OPERATOR_TOKEN, ...parts, payTo, storage, ports };
  const configOf = (world: WorldParts): GatewayConfig => parseConfig(JSON.stringify(worldConfig(world)), {});
  const config = configOf(first);
  const logLines: string[] = [];
  const log = createLog('info', config.secrets, { write: (line) => void logLines.push(line) });
  const opened = await openStore({ ...config.storage, merchantId: config.merchant.id }, log);
  const store = checkouts === undefined ? opened : { ...opened, checkouts };
  const rail = config.x402 === undefined ? undefined : await createRails(entriesIn(config), log);
  const gateway = await createGateway({ config, store, rail, log, appProbes, busy }, hooks);
  return {
    ...gateway,
    ...{ log, config, store, logLines },
    reload: (overrides) => gateway.reload(configOf({ ...first, overrides: { ...first.overrides, ...overrides } })),
    async close() {
      await gateway.close();
      await rail?.close();
      await store.close();
    },
  };
}
