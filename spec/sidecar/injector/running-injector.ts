/** An injector of a spec: its mounted files, changed as a kubelet changes them, and its callers. */

import { once } from 'node:events';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { join } from 'node:path';
import { openInjector } from '../../../src/sidecar/injector/open-injector.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { type Authority, createAuthority, type Identity } from '../../support/certificates.ts';
import { bytesOf } from './reviews.ts';

type Files = Readonly<Record<string, string>>;

/** A directory as a ConfigMap or a Secret is mounted: files link to `..data`, which is swapped. */
export class Mount {
  readonly directory: string;
  #generation = 0;

  constructor(directory: string, files: Files) {
    this.directory = directory;
    mkdirSync(directory);
    this.swap(files);
    for (const name of Object.keys(files)) symlinkSync(join('..data', name), join(directory, name));
  }

  /** Puts other contents in place of all files at once. */
  swap(files: Files): void {
    this.#generation += 1;
    const next = `..${this.#generation}`;
    mkdirSync(join(this.directory, next));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.directory, next, name), text);
    symlinkSync(next, join(this.directory, '..data_tmp'));
    renameSync(join(this.directory, '..data_tmp'), join(this.directory, '..data'));
  }
}

/** The files of a Secret of the type `kubernetes.io/tls`. */
export function secretOf({ certificate, key }: Identity): Files {
  return { 'tls.crt': certificate, 'tls.key': key };
}

/** A running injector. */
export interface RunningInjector {
  readonly port: number;
  readonly authority: Authority;
  readonly certificates: Mount;
  readonly options: Mount;
  /** The file of the authority whose clients may call. */
  readonly clientAuthority: string;
  /** The lines of its log so far. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** Resolves with the first line, past or to come, that the predicate accepts. */
  logged(predicate: (line: Readonly<Record<string, unknown>>) => boolean): Promise<Readonly<Record<string, unknown>>>;
  /** What the second listener answers. */
  management(path: string, method?: string): Promise<{ readonly status: number; readonly text: string }>;
  drain(): Promise<void>;
}

interface InjectorParts {
  /** Whose clients may call. */
  readonly clients?: Authority;
  readonly clientName?: string;
  readonly drainMs?: number;
}

/** Starts an injector on free ports of 127.0.0.1, in this process. */
export async function startInjector(ends: AsyncDisposableStack, parts: InjectorParts = {}): Promise<RunningInjector> {
  const { clients, clientName, drainMs = 0 } = parts;
  const root = await temporaryDirectory(ends, 'injector-');
  const authority = createAuthority('injector');
  const certificates = new Mount(join(root, 'tls'), secretOf(authority.issue()));
  const options = new Mount(join(root, 'options'), { 'options.yaml': 'image: registry.example/gateway:1\n' });
  const clientAuthority = join(root, 'clients.pem');
  writeFileSync(clientAuthority, clients?.certificate ?? '');
  const lines: Readonly<Record<string, unknown>>[] = [];
  const waiting = new Set<() => void>();
  const log = createLog('info', [], {
    write(line) {
      lines.push(JSON.parse(line));
      for (const look of waiting) look();
    },
  });
  const injector = await openInjector(
    {
      options: join(options.directory, 'options.yaml'),
      certificates: certificates.directory,
      clientAuthority: clients === undefined ? undefined : clientAuthority,
      clientName,
      namespace: 'agent-commerce-system',
      host: '127.0.0.1',
      port: 0,
      managementPort: 0,
      drainMs,
    },
    log,
  );
  let drained: Promise<void> | undefined;
  const drain = () => {
    drained ??= injector.drain();
    return drained;
  };
  ends.defer(drain);
  return {
    port: injector.port,
    authority,
    certificates,
    options,
    clientAuthority,
    log: lines,
    logged: (predicate) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = lines.find(predicate);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    async management(path, method = 'GET') {
      const response = await fetch(`http://127.0.0.1:${injector.managementPort}${path}`, { method });
      return { status: response.status, text: await response.text() };
    },
    drain,
  };
}

/** What an injector answered. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The document of the body. */
  readonly document: AnswerDocument;
  /** The fingerprint of the certificate that was served. */
  readonly served: string;
}

interface AnswerDocument {
  readonly kind: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly response?: { readonly uid: string; readonly allowed: boolean; readonly patch?: string };
}

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  /** Bytes, or what is made JSON. */
  readonly body?: unknown;
  readonly agent?: https.Agent;
  readonly tls?: https.RequestOptions;
}

/** Asks as an API server does. Rejects when no answer comes. */
export function ask({ port, authority }: RunningInjector, asked: Asked): Promise<Answer> {
  const { path = '/mutate?timeout=5s', method = 'POST', headers = {}, body, agent = false, tls } = asked;
  const place = { host: '127.0.0.1', port, path, method, headers, ca: authority.certificate, agent, ...tls };
  return askOver(place, Buffer.isBuffer(body) || body === undefined ? body : bytesOf(body));
}

/** The same at any place. */
export async function askOver(place: https.RequestOptions, body: Buffer | undefined): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...place.headers };
  const request = https.request({ method: 'POST', agent: false, ...place, headers });
  // A refusal may come while the body is still on its way.
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  request.end(body);
  return answerOf((await answered)[0]);
}

/** Reads an answer whole. */
export async function answerOf(response: IncomingMessage): Promise<Answer> {
  const { socket } = response;
  const served = 'getPeerCertificate' in socket ? (socket as PeerSocket).getPeerCertificate().fingerprint256 : '';
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const document = JSON.parse(Buffer.concat(chunks).toString()) as AnswerDocument;
  return { status: response.statusCode ?? 0, headers: response.headers, document, served };
}

interface PeerSocket {
  getPeerCertificate(): { readonly fingerprint256: string };
}
