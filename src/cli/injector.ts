/** `acg injector`: the admission webhook. */

import type { Command } from 'commander';
import type { InjectorSettings } from '../sidecar/injector/open-injector.ts';
import { defineCommand, signalled, UsageError, wholeNumber } from './program.ts';

const USUAL_NAMESPACE = 'agent-commerce-system';
const USUAL_PORT = 8_443;
const USUAL_MANAGEMENT_PORT = 8_403;
/** How long reviews are still taken after SIGTERM, seconds. */
const USUAL_DRAIN_SECONDS = 5;
const MAX_DRAIN_SECONDS = 60;
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function injectorCommand(): Command {
  const about = 'Answers the admission reviews of API servers over TLS: opted-in pods get the gateway.';
  return defineCommand('injector', about, 'acg injector --options options.yaml --certificates tls')
    .option('--options <path>', 'a YAML file, or the folder of the mounted ConfigMap')
    .option('--certificates <folder>', 'a mounted Secret with tls.crt and tls.key')
    .option('--client-ca <file>', 'the authority of certificates of API servers')
    .option('--client-name <name>', 'whom a certificate of --client-ca must name')
    .option('--namespace <name>', 'its own namespace', USUAL_NAMESPACE)
    .option('--host <address>', 'the address to listen on; else every one')
    .option('--port <port>', 'the port of reviews', String(USUAL_PORT))
    .option('--management-port <port>', 'the port of probes and metrics', String(USUAL_MANAGEMENT_PORT))
    .option('--drain-seconds <n>', 'reviews still taken after SIGTERM, seconds', String(USUAL_DRAIN_SECONDS))
    .action((args) => serveReviews(settingsOf(args)));
}

interface InjectorArgs {
  readonly options?: string;
  readonly certificates?: string;
  readonly clientCa?: string;
  readonly clientName?: string;
  readonly namespace: string;
  readonly host?: string;
  readonly port: string;
  readonly managementPort: string;
  readonly drainSeconds: string;
}

/** @throws UsageError */
function settingsOf(args: InjectorArgs): InjectorSettings {
  const { clientCa, clientName } = args;
  if (clientName !== undefined && clientCa === undefined) throw new UsageError('--client-name belongs to --client-ca');
  return {
    options: needed(args.options, 'options'),
    certificates: needed(args.certificates, 'certificates'),
    clientAuthority: clientCa,
    clientName,
    namespace: label(args.namespace, 'namespace'),
    // Undefined: every address, also where the machine has no IPv6.
    host: args.host,
    port: wholeNumber(args.port, 'port', 0, 65_535),
    managementPort: wholeNumber(args.managementPort, 'management-port', 0, 65_535),
    drainMs: 1_000 * wholeNumber(args.drainSeconds, 'drain-seconds', 0, MAX_DRAIN_SECONDS),
  };
}

/** Runs until SIGTERM or SIGINT; a second signal ends it at once. */
async function serveReviews(settings: InjectorSettings): Promise<void> {
  const [{ createLog }, { openInjector }] = await Promise.all([
    import('../telemetry/log/log.ts'),
    import('../sidecar/injector/open-injector.ts'),
  ]);
  const log = createLog('info', []);
  try {
    const opened = await openInjector(settings, log);
    await signalled();
    await opened.drain();
    log.info('stopped');
  } catch (error) {
    log.fatal({ err: error }, 'not started');
    throw error;
  } finally {
    log.flush();
  }
}

function needed(value: string | undefined, option: string): string {
  if (value === undefined || value === '') throw new UsageError(`--${option} is missing`);
  return value;
}

function label(value: string, option: string): string {
  if (!DNS_LABEL.test(value))
    throw new UsageError(`--${option} wants a name of Kubernetes: lower case letters, digits and -, at most 63`);
  return value;
}
