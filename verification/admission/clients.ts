/**
 * What an API server is told when the injector refuses it: its own webhook client calls an injector
 * that knows its clients. `node verification/admission/clients.ts`; exit code 1 unless each refusal
 * reaches the author of the pod in the injector's words.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RECORDED_POD } from '../../spec/sidecar/injector/reviews.ts';
import { startInjector } from '../../spec/sidecar/injector/running-injector.ts';
import { createAuthority, type Identity } from '../../spec/support/certificates.ts';
import { makeCertificates } from '../../src/sidecar/injector/certificates.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { clusterOf, FREE } from './clusters.ts';
import { type Cluster, judge, judgeProgram } from './judge.ts';
import { type ClusterObject, rendered } from './manifests.ts';

const NAME = { service: 'agent-commerce-injector', namespace: 'agent-commerce-system' };

interface Webhook {
  readonly clientConfig: { readonly service: object };
}

/** The rendered configuration with another authority, and another path where one is given. */
function configured(authorities: string, path = '/mutate'): readonly ClusterObject[] {
  const caBundle = Buffer.from(authorities).toString('base64');
  return rendered('webhook')
    .filter(({ kind }) => kind === 'MutatingWebhookConfiguration')
    .map((object) => ({
      ...object,
      webhooks: (object['webhooks'] as readonly Webhook[]).map((webhook) => ({
        ...webhook,
        clientConfig: { caBundle, service: { ...webhook.clientConfig.service, path } },
      })),
    }));
}

/** Writes the certificate that an API server is to show to the webhook. */
function kubeconfig(directory: string, name: string, { certificate, key }: Identity): string {
  const [data, keyData] = [certificate, key].map((pem) => Buffer.from(pem).toString('base64'));
  const file = join(directory, name);
  const host = `${NAME.service}.${NAME.namespace}.svc`;
  const user = { 'client-certificate-data': data, 'client-key-data': keyData };
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: host, user }] }));
  return file;
}

/** What each cluster is told; undefined: the pod is stored. */
const TOLD: Readonly<Record<string, RegExp | undefined>> = {
  'its own certificate': undefined,
  'no certificate': /failed to call webhook: A client certificate is required, and none was shown\./,
  'a certificate of another authority': /failed to call webhook: The client certificate is not trusted here: /,
  'another path': /failed to call webhook: Reviews are answered at \/mutate only\./,
  'another authority for the injector': /certificate signed by unknown authority/,
};

await using ends = new AsyncDisposableStack();
const directory = await temporaryDirectory(ends, 'clients-');
const clients = createAuthority('clients');
const injector = await startInjector(ends, { clients });
const { certificate, key, authorities } = makeCertificates(NAME, 1, undefined, Date.now());
injector.certificates.swap({ 'tls.crt': certificate, 'tls.key': key });
await injector.logged(({ what, msg }) => what === 'certificate' && msg === 'reloaded');

const services = { [`${NAME.namespace}/${NAME.service}`]: `127.0.0.1:${injector.port}` };
const own = kubeconfig(directory, 'own', clients.issue());
const foreign = kubeconfig(directory, 'foreign', createAuthority('clients').issue());
const clusters: Readonly<Record<string, Cluster>> = {
  'its own certificate': clusterOf(configured(authorities), { services, kubeconfig: own }),
  'no certificate': clusterOf(configured(authorities), { services }),
  'a certificate of another authority': clusterOf(configured(authorities), { services, kubeconfig: foreign }),
  'another path': clusterOf(configured(authorities, '/other'), { services, kubeconfig: own }),
  'another authority for the injector': clusterOf(configured(createAuthority('other').certificate), { services }),
};
const reviews = Object.keys(clusters).map(
  (cluster) => ({ name: cluster, cluster, namespace: FREE, operation: 'CREATE', object: RECORDED_POD }) as const,
);
for (const { name, object, refused = '' } of await judge(judgeProgram(console.log), clusters, reviews)) {
  const told = TOLD[name];
  const holds = told === undefined ? object !== undefined : told.test(refused);
  console.log(`${holds ? 'holds' : 'FAILS'}  ${name}: ${refused || 'stored'}`);
  if (!holds) process.exitCode = 1;
}
