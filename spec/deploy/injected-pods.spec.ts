import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import { POD_FIXTURES } from '../sidecar/injection/fixtures.ts';
import { kubectl } from './kubectl.ts';

const KUBECTL = kubectl();

/** The pod as the patch library and the types of Kubernetes make it. */
function patched(file: string, patch: unknown): unknown {
  const args = ['patch', '--local', '-f', file, '--type', 'json', '-p', JSON.stringify(patch), '-o', 'json'];
  const { stdout, stderr } = spawnSync(KUBECTL, args, {
    env: { ...process.env, KUBECONFIG: '/dev/null' },
    encoding: 'utf8',
  });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

/** Without what decoding and encoding adds: empty members, and the time that no pod has yet. */
function written(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => member !== null && !(EMPTY.has(name) && Object.keys(member).length === 0))
      .map(([name, member]) => [name, written(member)]),
  );
}
const EMPTY: ReadonlySet<string> = new Set(['status', 'resources']);

describe('the patch of injection, applied by kubectl', () => {
  for (const { name, pod, file, refused } of POD_FIXTURES)
    if (!refused)
      it(`makes the injected pod of ${name}, with nothing that Kubernetes does not know`, () => {
        const injection = injectPod(pod, USUAL_OPTIONS);
        assert.equal(injection.kind, 'injected');
        if (injection.kind === 'injected')
          assert.deepEqual(written(patched(file, injection.patch)), written(injection.pod));
      });
});
