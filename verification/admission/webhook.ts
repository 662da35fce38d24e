/** The injector in a process of its own, as a cluster that calls it over TLS. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { terminate } from '../../spec/support/child.ts';
import { temporaryDirectory } from '../../spec/support/temporary-directory.ts';
import { clusterOf } from './clusters.ts';
import type { Cluster } from './judge.ts';
import { type ClusterObject, rendered } from './manifests.ts';

const ACG = join(import.meta.dirname, '../../src/main.ts');
const STOP_GRACE_MS = 10_000;

interface Service {
  readonly name: string;
  readonly namespace: string;
}

interface Webhook {
  readonly clientConfig: { readonly service: Service };
}

/**
 * Starts the injector with a certificate of its own and gives the cluster whose webhook it is, and
 * one in which it is away. `options`: the file that it reads.
 */
export async function startWebhook(
  ends: AsyncDisposableStack,
  options: string,
): Promise<Readonly<Record<'webhook' | 'webhook away', Cluster>>> {
  const objects = rendered('webhook');
  const { name, namespace } = serviceOf(objects);
  const certificates = join(await temporaryDirectory(ends, 'admission-'), 'tls');
  const made = spawnSync(
    process.execPath,
    [ACG, 'injector', 'certificate', '--service', name, '--namespace', namespace, '--directory', certificates],
    { encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`acg injector certificate: ${made.stderr.trim()}`);
  const port = await startInjector(ends, ['--options', options, '--certificates', certificates]);
  const trusted = objects.map((object) => trusting(object, readFileSync(join(certificates, 'ca.crt'), 'utf8')));
  const at = (host: string) => clusterOf(trusted, { services: { [`${namespace}/${name}`]: host } });
  return {
    webhook: at(`127.0.0.1:${port}`),
    // Port 9 of loopback: nothing listens there.
    'webhook away': at('127.0.0.1:9'),
  };
}

function webhooksOf(object: ClusterObject): readonly Webhook[] {
  return (object['webhooks'] ?? []) as readonly Webhook[];
}

function serviceOf(objects: readonly ClusterObject[]): Service {
  const [webhook] = objects.flatMap(webhooksOf);
  if (webhook === undefined) throw new Error('deploy/admission/webhook renders no webhook');
  return webhook.clientConfig.service;
}

/** As cert-manager, or a hand, puts the authority into the configuration. */
function trusting(object: ClusterObject, authority: string): ClusterObject {
  if (object.kind !== 'MutatingWebhookConfiguration') return object;
  const caBundle = Buffer.from(authority).toString('base64');
  return {
    ...object,
    webhooks: webhooksOf(object).map((webhook) => ({
      ...webhook,
      clientConfig: { ...webhook.clientConfig, caBundle },
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
