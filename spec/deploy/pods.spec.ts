import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { kubectl } from './kubectl.ts';
import { containersOf, missingFrom, podOf } from './manifest.ts';
import { Development, Production } from './rendered.ts';

for (const { overlay, rendered, namespace } of [
  { overlay: 'development', rendered: new Development(), namespace: 'agent-commerce-dev' },
  { overlay: 'production', rendered: new Production(), namespace: 'market-shop' },
])
  describe(`every pod of the ${overlay} overlay`, () => {
    it('conforms to the restricted profile of the Pod Security Standards', () => {
      assert.equal(
        rendered.pick('Namespace', namespace).metadata.labels?.['pod-security.kubernetes.io/enforce'],
        'restricted',
      );
      for (const workload of rendered.workloads) {
        const pod = podOf(workload);
        assert.equal(pod.hostNetwork ?? pod.hostPID ?? false, false);
        assert.deepEqual(
          pod.volumes?.filter(({ hostPath }) => hostPath !== undefined),
          [],
        );
      }
      for (const { name, securityContext } of rendered.containers) {
        const { runAsNonRoot, allowPrivilegeEscalation, capabilities, seccompProfile, privileged } =
          securityContext ?? {};
        assert.deepEqual(
          { runAsNonRoot, allowPrivilegeEscalation, capabilities, seccompProfile, privileged },
          {
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            seccompProfile: { type: 'RuntimeDefault' },
            privileged: undefined,
          },
          name,
        );
      }
    });

    it('writes only to its volumes, and its own container never runs as root', () => {
      for (const { name, securityContext } of rendered.containers) {
        assert.equal(securityContext?.readOnlyRootFilesystem, true, name);
        assert.notEqual(securityContext?.runAsUser, 0, name);
      }
    });

    it('takes secrets from files, never from the environment', () => {
      for (const { name, env = [], envFrom } of rendered.containers) {
        assert.equal(envFrom, undefined, name);
        assert.deepEqual(
          env.filter(({ valueFrom }) => JSON.stringify(valueFrom ?? '').includes('secretKeyRef')),
          [],
          name,
        );
      }
    });

    it('mounts directories, which follow a change, and never a single file', () => {
      for (const { volumeMounts = [] } of rendered.containers) {
        assert.deepEqual(
          volumeMounts.filter(({ subPath }) => subPath !== undefined),
          [],
        );
      }
    });

    it('lets the gateway read its secret files without changing the group of the backend’s volumes', () => {
      const secret = rendered.backendPod.volumes?.find(({ name }) => name === 'agent-commerce-secret')?.secret;
      assert.equal(secret?.defaultMode, 0o444);
      const others = containersOf(rendered.backendPod).filter(({ name }) => name !== 'agent-commerce-gateway');
      assert.ok(
        others.every(({ volumeMounts = [] }) => volumeMounts.every(({ name }) => name !== 'agent-commerce-secret')),
      );
    });

    it('takes no image by a tag that moves', () => {
      for (const { name, image } of rendered.containers) {
        assert.match(image, /(:[\w.-]+|@sha256:[0-9a-f]{64})$/, name);
        assert.doesNotMatch(image, /:latest$/, name);
      }
    });

    it('has only fields that Kubernetes knows, in every pod and Service', () => {
      for (const object of rendered.objects) {
        const isService = object.kind === 'Service';
        if (!isService && object.spec?.template === undefined) continue;
        const selector = 'agent-commerce.dev/injected=true';
        const args = isService ? ['set', 'selector', '--local', selector] : ['set', 'env', '--local', 'SPEC=1'];
        const { stdout, stderr } = spawnSync(kubectl(), [...args, '-f', '-', '-o', 'json'], {
          input: JSON.stringify(object),
          env: { ...process.env, KUBECONFIG: '/dev/null' },
          encoding: 'utf8',
        });
        assert.notEqual(stdout, '', stderr);
        const known = missingFrom(JSON.parse(stdout), object).filter(
          (path) => !(isService && path.startsWith('$.spec.selector')),
        );
        assert.deepEqual(known, [], `${object.kind}/${object.metadata.name}`);
      }
    });
  });
