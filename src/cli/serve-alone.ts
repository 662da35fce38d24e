/** A gateway of one process: it serves agents and the pod. */

import { openAppProbes } from '../app/app-probe-guard.ts';
import { drainLengthOf } from '../app/drain-length.ts';
import { openHooks, stepsOfDrain } from '../app/open-pod-hooks.ts';
import { createListener } from '../server/listener/listen.ts';
import { type Log, refusalLog } from '../telemetry/log/log.ts';
import { listenAt, type Opened } from './closing.ts';
import { collectStart } from './collect-start.ts';
import { type Openers, openAgents } from './open-agents.ts';
import { checkedDrain } from './process-settings.ts';
import { graceOf, type Serving, type Start, startFacts, watchConfig } from './serving.ts';

/** Opens everything, notes the closers, and resolves once both listeners listen. */
export async function openAlone(
  { source, loaded, settings, appProbes, secrets, hangUp }: Start,
  log: Log,
  opened: Opened,
  openers?: Openers,
): Promise<Serving> {
  const { config } = loaded;
  // Hooks and signals start the same drain; both need the gateway, and the gateway shows the hooks.
  const podHooks = { key: settings.hookKey, drain: () => hooks.drain(), release: () => hooks.release() };
  const { gateway, agents, storeName, ...at } = await openAgents({ config, appProbes }, podHooks, log, opened, openers);
  const management = createListener({ app: gateway.management, onRefused: refusalLog(log) });
  const { drainSeconds: propagation } = settings;
  const hooks = openHooks({
    ...{ config, gateway, log, ...graceOf(settings, drainLengthOf(config, propagation)) },
    drainSteps: () => stepsOfDrain(drainLengthOf(gateway.config(), propagation), gateway, agents, log),
    listenAgain: at.listenAgain,
  });
  opened.push(
    () => management.destroy(),
    () => hooks.stop(),
  );
  const agentsAt = await at.listen();
  const managementAt = await listenAt(management, 'management', config.management);
  const ports = { agents: agentsAt.port, management: managementAt.port };
  const facts = { ...ports, ...startFacts(config, settings), store: storeName };
  log.info(facts, 'listening');
  watchConfig({ source, loaded, secrets, hangUp }, log, opened, {
    metrics: gateway.metrics,
    check(next) {
      checkedDrain(next, settings);
      openAppProbes(process.env, next);
    },
    use({ config: next }) {
      gateway.reload(next);
      at.follow(next);
    },
  });
  collectStart();
  return hooks;
}
