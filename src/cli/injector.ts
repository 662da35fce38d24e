/** `acg injector`: the admission webhook, and `acg injector certificate`, which makes its own. */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { InjectorSettings } from '../sidecar/injector/open-injector.ts';
import { UsageError } from './exit-code.ts';

const USUAL_NAMESPACE = 'agent-commerce-system';
const USUAL_PORT = 8_443;
const USUAL_MANAGEMENT_PORT = 8_403;
/** How long reviews are still taken after SIGTERM, seconds. */
const USUAL_DRAIN_SECONDS = 5;
const MAX_DRAIN_SECONDS = 60;
const USUAL_DAYS = 90;
/** A leaf must not outlive its authority. */
const MAX_DAYS = 5 * 365;
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const USAGE = `acg injector --options PATH --certificates DIRECTORY [--client-ca FILE [--client-name NAME]]
             [--namespace NAMESPACE] [--host ADDRESS] [--port PORT] [--management-port PORT] [--drain-seconds SECONDS]
               answer the admission reviews of API servers over TLS: give opted-in pods the gateway
               PATH: a YAML file, or the directory in which the ConfigMap agent-commerce-injection is mounted
acg injector certificate --service NAME --namespace NAMESPACE --directory DIRECTORY [--days DAYS]
               write tls.crt, tls.key and ca.crt for that Service; again to renew
`;

/** Runs one of the two commands. `words`: the arguments behind `injector`. @throws UsageError */
export async function injector(words: readonly string[]): Promise<number> {
  const [first] = words;
  if (words.includes('--help') || words.includes('-h')) process.stdout.write(USAGE);
  else if (first === 'certificate') await certificate(words.slice(1));
  else await serveReviews(settingsOf(words));
  return 0;
}

/** @throws UsageError */
function settingsOf(words: readonly string[]): InjectorSettings {
  const { values } = parseArgs({
    args: [...words],
    options: {
      options: { type: 'string' },
      certificates: { type: 'string' },
      'client-ca': { type: 'string' },
      'client-name': { type: 'string' },
      namespace: { type: 'string' },
      host: { type: 'string' },
      port: { type: 'string' },
      'management-port': { type: 'string' },
      'drain-seconds': { type: 'string' },
    },
  });
  const { 'client-ca': clientAuthority, 'client-name': clientName } = values;
  if (clientName !== undefined && clientAuthority === undefined)
    throw new UsageError('--client-name belongs to --client-ca');
  return {
    options: needed(values.options, 'options'),
    certificates: needed(values.certificates, 'certificates'),
    clientAuthority,
    clientName,
    namespace: label(values.namespace ?? USUAL_NAMESPACE, 'namespace'),
    // None: every address, also where the machine has no IPv6.
    host: values.host,
    port: number(values.port ?? USUAL_PORT, 'port', 0, 65_535),
    managementPort: number(values['management-port'] ?? USUAL_MANAGEMENT_PORT, 'management-port', 0, 65_535),
    drainMs: 1_000 * number(values['drain-seconds'] ?? USUAL_DRAIN_SECONDS, 'drain-seconds', 0, MAX_DRAIN_SECONDS),
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
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
    await opened.drain();
    log.info('stopped');
  } catch (error) {
    log.fatal({ err: error }, 'not started');
    throw error;
  } finally {
    log.flush();
  }
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}

async function certificate(words: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...words],
    options: {
      service: { type: 'string' },
      namespace: { type: 'string' },
      directory: { type: 'string' },
      days: { type: 'string' },
    },
  });
  const directory = needed(values.directory, 'directory');
  const name = {
    service: label(needed(values.service, 'service'), 'service'),
    namespace: label(needed(values.namespace, 'namespace'), 'namespace'),
  };
  const days = number(values.days ?? USUAL_DAYS, 'days', 1, MAX_DAYS);
  const { certificatesIn, makeCertificates } = await import('../sidecar/injector/certificates.ts');
  mkdirSync(directory, { recursive: true });
  const made = makeCertificates(name, days, existingIn(directory), Date.now());
  // Trust first: a leaf must never be there before what it is trusted by.
  replace(join(directory, 'ca.crt'), made.authorities, 0o644);
  replace(join(directory, 'tls.key'), made.key, 0o600);
  replace(join(directory, 'tls.crt'), made.certificate, 0o644);
  const trusted = certificatesIn(made.authorities).length;
  process.stdout.write(
    [
      `tls.crt  ${made.leaf.subjectAltName} until ${made.leaf.validTo}`,
      `ca.crt   ${trusted === 1 ? 'the authority' : 'the authority and the one before it'}, until ${made.authority.validTo}`,
      'First put ca.crt into the caBundle of the webhook configuration, then tls.crt and tls.key into the Secret.',
      '',
    ].join('\n'),
  );
}

/** What an earlier run wrote; undefined when there is nothing that could be kept. */
function existingIn(directory: string) {
  try {
    return {
      authorities: readFileSync(join(directory, 'ca.crt'), 'utf8'),
      certificate: readFileSync(join(directory, 'tls.crt'), 'utf8'),
    };
  } catch {
    return undefined;
  }
}

/** By another name first: a reader sees the file before or after, and the key is never readable. */
function replace(file: string, content: string, mode: number): void {
  const next = `${file}.${process.pid}`;
  writeFileSync(next, content, { mode, flag: 'wx' });
  renameSync(next, file);
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

function number(value: string | number, option: string, least: number, most: number): number {
  const read = /^\d{1,9}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (!(read >= least && read <= most)) throw new UsageError(`--${option} must be a number from ${least} to ${most}`);
  return read;
}
