/**
 * The entry of the package: a gateway in a process of one's own, on its own listeners or behind an
 * Express app.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { drainLengthOf, stepsOfDrain } from './app/open-pod-hooks.ts';
import { warningsOf } from './app/route-warnings.ts';
import { closed, listenAt, type Opened, openAgents } from './cli/open-agents.ts';
import { loadConfig, parseConfig } from './config/load.ts';
import type { X402Rail } from './payments/x402/create-rail.ts';
import { createRails } from './payments/x402/create-rails.ts';
import { createListener } from './server/listener/listen.ts';
import type { Store } from './store/documents/store.ts';
import { openStore } from './store/open.ts';
import { createLog, refusalLog } from './telemetry/log/log.ts';

export { ConfigError } from './problems/problem.ts';
export { StoreError } from './store/port/store-error.ts';
export type { Store, X402Rail };

/** A handler of requests, as Express and `node:http` take it. */
type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void;

/** The parts of a gateway. */
export interface GatewayOptions {
  /** The path of a configuration file, or the document itself (docs/configuration.md). */
  readonly config: string | Readonly<Record<string, unknown>>;
  /** Values of placeholders in the configuration; `process.env` unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * An Express app. The gateway answers each request that passes the handlers registered before. No
   * body parser may be one of them: the gateway reads bodies itself.
   */
  readonly app?: { use(handler: RequestHandler): unknown };
  /** Takes the place of the configured store. The gateway closes it. */
  readonly store?: Store;
  /** Takes the place of the configured way to settle payments. The gateway closes it. */
  readonly rail?: X402Rail;
  /** Takes the log, a line of JSON at a time, in which secrets are masked; stdout unless given. */
  readonly log?: { write(line: string): void };
  /** `info` unless given; else as LOG_LEVEL of docs/configuration.md. */
  readonly logLevel?: string;
}

/** A gateway that is open. */
export interface OpenGateway {
  /** Answers agents and operators; for an app or a server of one's own, at its root. */
  readonly handler: RequestHandler;
  /** Takes WebSockets to the backend, for `server.on('upgrade', …)`; undefined: none pass. */
  readonly upgrade: ((req: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
  /** Answers probes, `/metrics` and the hooks of a pod; never for the public. */
  readonly management: RequestHandler;
  /** Warnings about settings that are accepted and seldom meant. */
  readonly warnings: readonly string[];
  /** Listens where `server` and `management` of the configuration say; resolves with the ports. */
  listen(): Promise<{ readonly agents: number; readonly management: number }>;
  /** Lets running calls end, writes down how they ended, and closes what was opened here. */
  close(): Promise<void>;
}

/**
 * Opens a gateway in this process. It does not listen yet and handles no signal.
 * @throws ConfigError for a configuration that is refused; Error when the store cannot be opened
 */
export async function createGateway(options: GatewayOptions): Promise<OpenGateway> {
  const { env = process.env } = options;
  const config =
    typeof options.config === 'string'
      ? loadConfig({ path: options.config, env })
      : parseConfig(JSON.stringify(options.config), env);
  const log = createLog(options.logLevel ?? 'info', config.secrets, options.log);
  const { store, rail } = options;
  const opened: Opened = [];
  const hooks = { drain: () => drained(), release: async () => undefined };
  const { gateway, agents, listen } = await openAgents({ config }, hooks, log, opened, {
    openStore: store === undefined ? openStore : async () => store,
    createRails: rail === undefined ? createRails : async () => rail,
  }).catch(async (error: unknown) => {
    await closed(opened, log);
    throw error;
  });
  const management = createListener({ app: gateway.management, onRefused: refusalLog(log) });
  opened.push(() => management.destroy());
  const drained = (): Promise<void> =>
    gateway.lifecycle.drain(stepsOfDrain(drainLengthOf(config, 0), gateway, agents, log));
  const handler: RequestHandler = (req, res) => {
    const begin: RequestHandler = (later, answer) => void gateway.agents(later, answer);
    if (gateway.loadShedder(req, res, begin) === 'goes_on') begin(req, res);
  };
  options.app?.use(handler);
  return {
    handler,
    upgrade: gateway.relay?.upgrade,
    management: (req, res) => void gateway.management(req, res),
    warnings: warningsOf(config),
    async listen() {
      const at = await listen();
      const managementAt = await listenAt(management, 'management', config.management);
      return { agents: at.port, management: managementAt.port };
    },
    async close() {
      await drained();
      await closed(opened, log);
    },
  };
}
