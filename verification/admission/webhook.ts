/** The injector in processes of its own, as clusters that ask it over TLS. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { secretOf } from '../../spec/sidecar/injector/running-injector.ts';
import { createAuthority, type Identity } from '../../spec/support/certificates.ts';
import { terminate } from '../../tools/local-world/child.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type ClusterObject, clusterOf, rendered } from './clusters.ts';
import type { Cluster } from './judge.ts';

const ACG = join(import.meta.dirname, '../../src/main.ts');
const STOP_GRACE_MS = 10_000;
/** The discard service, which no machine runs. */
const UNUSED_PORT = 9;

interface Service {
  readonly name: string;
  readonly namespace: string;
}

interface Webhook {
  readonly clientConfig: { readonly service: Service };
}

/**
 * Clusters that ask an injector with a certificate of its own, and one that lets in only clients of
 * an authority. `options`: what they read.
 */
export async function startWebhook(
  ends: AsyncDisposableStack,
  options: string,
): Promise<Readonly<Record<string, Cluster>>> {
  const objects = rendered('webhook');
  const { name, namespace } = serviceOf(objects);
  const host = `${name}.${namespace}.svc`;
  const directory = await temporaryDirectory(ends, 'admission-');
  const certificates = join(directory, 'tls');
  mkdirSync(certificates);
  const [own, clients] = [createAuthority('injector'), createAuthority('API servers')];
  for (const [file, text] of Object.entries(secretOf(own.issue(host)))) writeFileSync(join(certificates, file), text);
  writeFileSync(join(directory, 'clients.crt'), clients.certificate);
  const words = ['--options', options, '--certificates', certificates];
  const [open, closed] = await Promise.all([
    startInjector(ends, words),
    startInjector(ends, [...words, '--client-ca', join(directory, 'clients.crt')]),
  ]);
  const called = (authority: string, path = '/mutate') => objects.map((object) => calling(object, authority, path));
  const trusted = called(own.certificate);
  const at = (port: number) => ({ services: { [`${namespace}/${name}`]: `127.0.0.1:${port}` } });
  const kubeconfig = (file: string, identity: Identity): string => {
    writeFileSync(join(directory, file), kubeconfigFor(host, identity));
    return join(directory, file);
  };
  return {
    webhook: clusterOf(trusted, at(open)),
    // Nothing listens there.
    'webhook away': clusterOf(trusted, at(UNUSED_PORT)),
    'webhook at another path': clusterOf(called(own.certificate, '/other'), at(open)),
    'webhook of another authority': clusterOf(called(clients.certificate), at(open)),
    'its own certificate': clusterOf(trusted, { ...at(closed), kubeconfig: kubeconfig('own', clients.issue()) }),
    'no certificate': clusterOf(trusted, at(closed)),
    'a foreign certificate': clusterOf(trusted, {
      ...at(closed),
      kubeconfig: kubeconfig('foreign', createAuthority('API servers').issue()),
    }),
  };
}

/** The API server's own certificate for this host, as its AdmissionConfiguration names it. */
function kubeconfigFor(host: string, { certificate, key }: Identity): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: host, user }] });
}

function webhooksOf(object: ClusterObject): readonly Webhook[] {
  return (object['webhooks'] ?? []) as readonly Webhook[];
}

function serviceOf(objects: readonly ClusterObject[]): Service {
  const [webhook] = objects.flatMap(webhooksOf);
  if (webhook === undefined) throw new Error('deploy/admission/webhook renders no webhook');
  return webhook.clientConfig.service;
}

/** As cert-manager puts the authority into the configuration, with this path. */
function calling(object: ClusterObject, authority: string, path: string): ClusterObject {
  if (object.kind !== 'MutatingWebhookConfiguration') return object;
  const caBundle = Buffer.from(authority).toString('base64');
  return {
    ...object,
    webhooks: webhooksOf(object).map((webhook) => ({
      ...webhook,
      clientConfig: { caBundle, service: { ...webhook.clientConfig.service, path } },
    })),
  };
}

/** The port of an injector on loopback, which `ends` stops. */
async function startInjector(ends: AsyncDisposableStack, words: readonly string[]): Promise<number> {
  const child = spawn(
    process.execPath,
    [ACG, 'injector', ...words, '--host', '127.0.0.1', '--port', '0', '--management-port', '0', '--drain-seconds', '0'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  ends.defer(async () => void (await terminate(child, STOP_GRACE_MS)));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  void once(child, 'exit').then(() => reject(new Error(`acg injector ended: ${said.trim()}`)));
  // Read to the end: a full pipe would stop the injector.
  createInterface({ input: child.stdout }).on('line', (line) => {
    said += `${line}\n`;
    const port = portIn(line);
    if (port !== undefined) resolve(port);
  });
  return promise;
}

function portIn(line: string): number | undefined {
  if (!line.startsWith('{')) return undefined;
  const { msg, port } = JSON.parse(line) as { readonly msg?: string; readonly port?: number };
  return msg === 'injector listening' ? port : undefined;
}
