/** Opens an injector: its mounted files, its two listeners, its log lines, and its end. */

import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Registry } from '@prometheus-io/client';
import { watchDirectories } from '../../config/reload.ts';
import { ConfigError } from '../../problems/problem.ts';
import { listenOn } from '../../server/http/respond.ts';
import { type Log, throttled } from '../../telemetry/log/log.ts';
import { createDurations } from '../../telemetry/metrics/durations.ts';
import { injectPod } from '../injection/inject-pod.ts';
import { type InjectionOptions, readOptions } from '../injection/options.ts';
import { REVIEW_RESULTS, readAdmissionRequest, review } from './review.ts';
import {
  createInjectorServer,
  type Identity,
  type RefusalListener,
  readClientAuthority,
  readIdentity,
} from './server.ts';

/** Longest name in a line of the log, characters. */
const MAX_NAME = 253;

export interface InjectorSettings {
  /** The file of `readOptions`, or the directory of `optionsSource`. */
  readonly options: string;
  /** A directory with `tls.crt` and `tls.key`: a mounted Secret of the type `kubernetes.io/tls`. */
  readonly certificates: string;
  /** A file with the authorities whose clients may call; undefined: any client may. */
  readonly clientAuthority: string | undefined;
  /** The common name that the certificate of a client must have, where one is demanded. */
  readonly clientName: string | undefined;
  /** The namespace of the injector itself. */
  readonly namespace: string;
  /** Undefined: every address. */
  readonly host: string | undefined;
  readonly port: number;
  readonly managementPort: number;
  /** How long a drain still takes reviews, milliseconds: Services learn of a drain late. */
  readonly drainMs: number;
  readonly pollMs?: number;
}

/** @throws ConfigError when a mounted file is not good; Error when a port cannot be opened */
export async function openInjector(settings: InjectorSettings, log: Log) {
  const { namespace, host, drainMs } = settings;
  const mounted = openMounted(settings, log, () => metrics);
  const metrics = injectorMetrics(() => mounted.identity.current().expiresAt);
  const serving = () => ({
    identity: mounted.identity.current(),
    clientAuthority: mounted.clientAuthority?.current(),
  });
  const inject = (pod: Parameters<typeof injectPod>[0]) => injectPod(pod, mounted.options.current(), randomUUID());
  const server = createInjectorServer({
    serving: serving(),
    clientName: settings.clientName,
    answer: (body) => answerReview(body, { inject, namespace }, metrics, log),
    onRefused: refusalLog(metrics, log),
    onHandshakeFailed: handshakeLog(log),
  });
  mounted.onRenewed(() => server.renew(serving()));
  let draining = false;
  const notReady = (): string | undefined => {
    if (draining) return 'draining';
    return mounted.identity.current().expiresAt <= Date.now() ? 'the certificate has expired' : undefined;
  };
  const management = createManagementServer({ metrics, notReady });
  try {
    const { port } = await server.listen(host, settings.port);
    const { port: managementPort } = await management.listen(host, settings.managementPort);
    log.info({ port, managementPort, expires: expiryOf(mounted.identity.current()) }, 'injector listening');
    return { port, managementPort, drain };
  } catch (error) {
    await closed();
    throw error;
  }

  /** Becomes unready, takes reviews for `drainMs` more, answers running reviews, and closes. */
  async function drain(): Promise<void> {
    draining = true;
    log.info('draining');
    server.beginClosing();
    await delay(drainMs);
    await closed();
  }

  async function closed(): Promise<void> {
    await server.close();
    management.close();
    mounted.close();
  }
}

type ReviewParts = Parameters<typeof review>[1];

/** Reads, decides and writes one review. @throws MalformedReview */
function answerReview(body: Buffer, parts: ReviewParts, metrics: InjectorMetrics, log: Log): string {
  const since = performance.now();
  const request = readAdmissionRequest(body);
  const { result, response, fault } = review(request, parts);
  const answer = JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response });
  const ms = performance.now() - since;
  metrics.reviewed(result, ms);
  const { uid, dryRun } = request;
  const line = {
    uid,
    namespace: request.namespace.slice(0, MAX_NAME),
    name: nameOf(request).slice(0, MAX_NAME),
    result,
    dryRun,
    warnings: response.warnings?.length ?? 0,
    ms: Math.round(ms * 100) / 100,
    message: response.status?.message,
  };
  if (result === 'failed') log.error({ ...line, err: fault }, 'a bug');
  else log.info(line, 'reviewed');
  return answer;
}

/** Pods of a workload have no name yet. */
function nameOf({ name, pod }: ReturnType<typeof readAdmissionRequest>): string {
  const { generateName } = pod?.metadata ?? {};
  return name === '' && typeof generateName === 'string' ? `${generateName}…` : name;
}

/** Logs a line for each request that was no review, at most ten a second for each status. */
function refusalLog(metrics: InjectorMetrics, log: Log): RefusalListener {
  const throttle = throttled((status, lines) => log.warn({ status, lines }, 'as many more of these in this second'));
  return (status, message, fault) => {
    metrics.malformed();
    throttle(String(status), () => {
      if (fault === undefined) log.warn({ status, message }, 'no review');
      else log.error({ status, err: fault }, 'a bug');
    });
  };
}

function handshakeLog(log: Log): (message: string) => void {
  const throttle = throttled((_kind, lines) => log.warn({ lines }, 'as many more handshakes failed'));
  return (message) => throttle('handshake', () => log.warn({ message }, 'no TLS connection'));
}

/** The argument of the command that names the files. */
const ARGUMENTS: Readonly<Record<Reloaded, string>> = {
  options: '--options',
  certificate: '--certificates',
  client_authority: '--client-ca',
};

function openMounted(settings: InjectorSettings, log: Log, metrics: () => InjectorMetrics) {
  const { certificates, clientAuthority, options, pollMs } = settings;
  let renewed: () => void = () => {};
  const open = <T>(what: Reloaded, files: readonly string[], read: (contents: readonly string[]) => T) => {
    const parts = {
      files,
      read,
      ...(pollMs === undefined ? {} : { pollMs }),
      onChange: (value: T) => {
        metrics().reloaded(what, 'reloaded');
        log.info(isIdentity(value) ? { what, expires: expiryOf(value) } : { what }, 'reloaded');
        if (what !== 'options') renewed();
      },
      onRejected: (reason: unknown) => {
        metrics().reloaded(what, 'rejected');
        log.error({ what, err: reason }, 'rejected: the last good content stays');
      },
    };
    try {
      return mountedFiles(parts);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      const message = what === 'certificate' && isMissing ? missingIdentity(certificates) : String(error);
      throw new ConfigError([{ path: ARGUMENTS[what], message }]);
    }
  };
  const pair = [join(certificates, 'tls.crt'), join(certificates, 'tls.key')];
  const injection = optionsSource(options);
  const opened = {
    options: open('options', injection.files, injection.read),
    identity: open('certificate', pair, ([certificate = '', key = '']) => readIdentity(certificate, key, Date.now())),
    clientAuthority:
      clientAuthority === undefined
        ? undefined
        : open('client_authority', [clientAuthority], ([pem = '']) => readClientAuthority(pem)),
  };
  return {
    ...opened,
    /** Calls `listener` when another certificate, or another authority, is to be used. */
    onRenewed(listener: () => void): void {
      renewed = listener;
    },
    close(): void {
      for (const one of Object.values(opened)) one?.close();
    },
  };
}

function missingIdentity(directory: string): string {
  return `${directory} lacks tls.crt or tls.key; mount a Secret of type kubernetes.io/tls there, which a Certificate of cert-manager provides`;
}

function isIdentity(value: unknown): value is Identity {
  return typeof value === 'object' && value !== null && 'expiresAt' in value;
}

function expiryOf({ expiresAt }: Identity): string {
  return new Date(expiresAt).toISOString();
}

const REQUEST_MS = 2_000;
const MAX_CONNECTIONS = 64;
const TEXT = 'text/plain; charset=utf-8';

interface ManagementParts {
  readonly metrics: Pick<InjectorMetrics, 'contentType' | 'text'>;
  /** Why the injector should get no reviews now; undefined: it should. */
  readonly notReady: () => string | undefined;
}

/** `/healthz`: the process answers. `/ready`: it can be asked for reviews. `/metrics`. */
function createManagementServer({ metrics, notReady }: ManagementParts) {
  const pages: Readonly<Record<string, () => Page | Promise<Page>>> = {
    '/healthz': () => [200, TEXT, 'ok\n'],
    '/ready': () => {
      const reason = notReady();
      return reason === undefined ? [200, TEXT, 'ready\n'] : [503, TEXT, `${reason}\n`];
    },
    '/metrics': async () => [200, metrics.contentType, await metrics.text()],
  };
  const server = http.createServer(
    { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: REQUEST_MS / 2 },
    async (req, res) => {
      const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
      const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
      const isRead = req.method === 'GET' || req.method === 'HEAD';
      const unknown: Page = [404, TEXT, `known are ${Object.keys(pages).join(', ')}\n`];
      const [status, type, text] = page === undefined ? unknown : isRead ? await page() : NOT_READ;
      if (status === 405) res.setHeader('allow', 'GET, HEAD');
      res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      res.end(req.method === 'HEAD' ? undefined : text);
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: (host: string | undefined, port: number) =>
      listenOn(server, { ...(host === undefined ? {} : { host }), port }),
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Page = readonly [status: number, type: string, text: string];

const NOT_READ: Page = [405, TEXT, 'GET and HEAD only\n'];

/** The last good value that was read from the files. */
interface Mounted<T> {
  current(): T;
  close(): void;
}

interface MountedParts<T> {
  readonly files: readonly string[];
  /** Throws when the contents, in the order of the files, are not good. */
  readonly read: (contents: readonly string[]) => T;
  readonly onChange: (value: T) => void;
  /** Called when a change is not good, once for each reason; the value before it stays. */
  readonly onRejected: (reason: unknown) => void;
  readonly pollMs?: number;
}

/**
 * Reads files and reads them again when they change.
 * @throws the errors of the first reading
 */
export function mountedFiles<T>({ files, read, onChange, onRejected, pollMs }: MountedParts<T>): Mounted<T> {
  let seen = contentsOf(files);
  let value = read(seen);
  let rejected: string | undefined;

  const look = (): void => {
    try {
      const found = contentsOf(files);
      if (found.every((content, index) => content === seen[index])) return;
      // Noted before `read`, so that bad contents are not read again at every look.
      seen = found;
      value = read(found);
      rejected = undefined;
      onChange(value);
    } catch (reason) {
      // The same reason is reported once: a missing file is missing at every look.
      if (String(reason) !== rejected) onRejected(reason);
      rejected = String(reason);
    }
  };
  const watch = watchDirectories(look, pollMs);
  watch.follow(files);
  return {
    current: () => value,
    close: () => watch.close(),
  };
}

function contentsOf(files: readonly string[]): readonly string[] {
  return files.map((file) => readFileSync(file, 'utf8'));
}

/** The keys of the ConfigMap that the validating policy reads too. */
const KEYS = [
  'image',
  'imagePullPolicy',
  'configMap',
  'secret',
  'secretKeys',
  'agentsPort',
  'managementPort',
  'drainSeconds',
  'cpuRequest',
  'memoryRequest',
  'memoryLimit',
] as const;
type Key = (typeof KEYS)[number];

interface OptionsSource {
  readonly files: readonly string[];
  /** @throws ConfigError */
  readonly read: (contents: readonly string[]) => InjectionOptions;
}

/**
 * A file is read as `readOptions` says. A directory is the mounted ConfigMap of the
 * validating policy: webhook and policy have one image of the gateway.
 */
export function optionsSource(path: string): OptionsSource {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    return { files: [path], read: ([text = '']) => readOptions(text) };
  return {
    files: KEYS.map((key) => join(path, key)),
    read: (contents) => readOptions(JSON.stringify(documentOf(contents))),
  };
}

/** The document of `readOptions`, from the contents in the order of the keys. */
function documentOf(contents: readonly string[]): object {
  const value = (key: Key): string => (contents[KEYS.indexOf(key)] ?? '').trim();
  return {
    image: value('image'),
    imagePullPolicy: value('imagePullPolicy'),
    configMap: value('configMap'),
    secret: value('secret'),
    secretKeys: listIn(value('secretKeys')),
    ports: { agents: numberIn(value('agentsPort')), management: numberIn(value('managementPort')) },
    drainSeconds: numberIn(value('drainSeconds')),
    resources: {
      requests: { cpu: value('cpuRequest'), memory: value('memoryRequest') },
      limits: { memory: value('memoryLimit') },
    },
  };
}

function listIn(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

/** A text that is no number stays as it is: the rule of the option refuses it. */
function numberIn(text: string): unknown {
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

/** `malformed`: no review could be read, and the answer was an HTTP status. */
const RESULTS = [...REVIEW_RESULTS, 'malformed'] as const;
const RELOADED = ['certificate', 'client_authority', 'options'] as const;

type Reloaded = (typeof RELOADED)[number];

type InjectorMetrics = ReturnType<typeof injectorMetrics>;

/** `expiresAt`: of the certificate that is served, milliseconds since 1970. */
function injectorMetrics(expiresAt: () => number) {
  const registry = new Registry();
  const registers = [registry];
  const durations = createDurations();
  collectDefaultMetrics({ register: registry });
  const reviews = new Counter({
    name: 'acg_injector_reviews_total',
    help: 'Admission reviews by result; malformed ones were refused with an HTTP status.',
    labelNames: ['result'] as const,
    registers,
  });
  const reloads = new Counter({
    name: 'acg_injector_reloads_total',
    help: 'Changes of mounted files by result; after a rejected one the last good content stays.',
    labelNames: ['what', 'result'] as const,
    registers,
  });
  const seconds = durations.histogram(
    'acg_injector_review_seconds',
    'Time from the last byte of a request to its answer.',
    'result',
  );
  // An unused label is not shown: an alert on its growth needs the zero.
  for (const result of RESULTS) reviews.inc({ result }, 0);
  for (const what of RELOADED) for (const result of ['reloaded', 'rejected']) reloads.inc({ what, result }, 0);
  new Gauge({
    name: 'acg_injector_certificate_expiry_seconds',
    help: 'Seconds until the certificate that is served expires; negative when it has.',
    registers,
    collect() {
      this.set((expiresAt() - Date.now()) / 1_000);
    },
  });
  return {
    reviewed(result: (typeof REVIEW_RESULTS)[number], ms: number): void {
      reviews.inc({ result });
      seconds(result).took(ms);
    },
    /** Counts a request that got no answer of admission. */
    malformed: () => reviews.inc({ result: 'malformed' }),
    reloaded: (what: Reloaded, result: 'reloaded' | 'rejected') => reloads.inc({ what, result }),
    contentType: registry.contentType,
    text: async () => [await registry.metrics(), durations.text()].join('\n'),
  };
}
