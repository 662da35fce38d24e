/** One worker of `acg serve`: serves agents, and does what its primary says until it ends. */

import { drainLengthOf } from '../app/drain-length.ts';
import type { Gateway, PreparedConfig } from '../app/gateway.ts';
import { stepsOfDrain } from '../app/open-pod-hooks.ts';
import { configOf } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { shareOf } from '../config/share-of.ts';
import { createLog, type Log, MaskedSecrets } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { answerCommands } from '../workers/channel.ts';
import { channelToPrimary } from '../workers/cluster.ts';
import type { FenceOrder, NumberedDocument, StartOrder } from '../workers/commands.ts';
import { closed, type Opened } from './closing.ts';
import { collectStart } from './collect-start.ts';
import { type Openers, openAgents } from './open-agents.ts';
import { processSettings } from './process-settings.ts';

/** The hooks of the pod come to the primary. */
const NO_HOOKS = { drain: async () => undefined, release: async () => undefined };

/** Runs until the primary says that this process ends, or is gone. */
export async function serveAsWorker(openers?: Openers): Promise<void> {
  // A terminal sends them to every process of its group: the primary says what becomes of them.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const settings = processSettings(process.env);
  const secrets = new MaskedSecrets(collectorFrom(process.env)?.secrets ?? []);
  const channel = channelToPrimary();
  const log = createLog(settings.logLevel, secrets, undefined, true).child({ worker: channel.worker });
  const opened: Opened = [];
  const ends = Promise.withResolvers<void>();
  const start = Promise.withResolvers<StartOrder>();
  const running = start.promise.then((order) => openWorker(order, secrets, log, opened, openers));
  // Every command answers with its failure; without a listener it would end the process as well.
  running.catch(() => undefined);
  const { drainSeconds } = settings;

  answerCommands(channel, {
    async start(order) {
      start.resolve(order);
      return { port: (await running).port };
    },
    ping: () => null,
    prepare: async (config) => (await running).prepare(config),
    async use(config) {
      const { use } = await running;
      // The others use it: a worker that cannot is replaced by one that begins with it.
      return use(config, (error) => {
        log.fatal({ err: error }, 'the configuration of the other workers cannot be used');
        log.flush();
        process.exit(1);
      });
    },
    discard: async () => (await running).discard(),
    async drain(length) {
      const { gateway, agents } = await running;
      await gateway.lifecycle.drain(stepsOfDrain(length, gateway, agents, log));
      return null;
    },
    openAgain: async () => (await running).openAgain(),
    fence: async (order) => setFence((await running).gateway, order),
    running: async () => (await running).gateway.exchanges.running(),
    async tryBackend() {
      await (await running).gateway.exchanges.tryBackend();
      return null;
    },
    readiness: async () => (await running).gateway.monitor.readiness(),
    routing: async () => (await running).gateway.monitor.routing(),
    metrics: async () => (await running).gateway.metrics.text(),
    end() {
      ends.resolve();
      return null;
    },
  });

  const primaryGone = channel.primaryGone.then(() => true);
  if (await Promise.race([primaryGone, ends.promise.then(() => false)])) {
    log.error('the primary is gone: this worker ends');
    const worker = await running.catch(() => undefined);
    if (worker !== undefined) {
      const { gateway, agents } = worker;
      // With the primary nothing accepts connections any more: no new call is waited for.
      const length = { ...drainLengthOf(gateway.config(), drainSeconds), propagationMs: 0 };
      await gateway.lifecycle.drain(stepsOfDrain(length, gateway, agents, log));
    }
  }
  await closed(opened, log);
  log.flush();
  // The channel would keep the process.
  setImmediate(() => process.exit());
}

async function openWorker(
  order: StartOrder,
  secrets: MaskedSecrets,
  log: Log,
  opened: Opened,
  openers: Openers | undefined,
) {
  const shareIn = (config: NumberedDocument) => {
    const whole = configOf(config);
    secrets.add(secretsOf(whole));
    return shareOf(whole, order.processes);
  };
  const config = shareIn(order.config);
  const { gateway, agents, ...at } = await openAgents({ config }, NO_HOOKS, log, opened, openers);
  if (order.fence !== undefined) setFence(gateway, order.fence);
  const { port } = await at.listen(order.port);
  collectStart();
  let prepared: { readonly number: number; readonly config: PreparedConfig } | undefined;
  const prepare = (next: NumberedDocument): null => {
    prepared?.config.discard();
    prepared = undefined;
    const share = shareIn(next);
    const made = gateway.prepare(share);
    const use = (): void => {
      made.use();
      at.follow(share);
    };
    prepared = { number: next.number, config: { ...made, use } };
    return null;
  };
  return {
    gateway,
    agents,
    port,
    prepare,
    discard(): null {
      prepared?.config.discard();
      prepared = undefined;
      return null;
    },
    /** One that began while the others prepared has it not. */
    use(next: NumberedDocument, failed: (error: unknown) => never): null {
      try {
        if (prepared?.number !== next.number) prepare(next);
        prepared?.config.use();
        prepared = undefined;
        return null;
      } catch (error) {
        return failed(error);
      }
    },
    async openAgain(): Promise<null> {
      gateway.exchanges.resume();
      await at.listenAgain();
      gateway.lifecycle.reopen();
      return null;
    },
  };
}

function setFence({ fence }: Pick<Gateway, 'fence'>, order: FenceOrder): null {
  if (order === 'release') fence.raise();
  fence[order]();
  return null;
}
