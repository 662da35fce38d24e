import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { processSettings } from '../../../src/cli/checked-start.ts';
import { ProblemList } from '../../../src/problems/problem.ts';
import { type AppProbeSettings, readAppProbes } from '../../../src/sidecar/app-probe-settings.ts';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { GATEWAY_CONTAINER } from '../../../src/sidecar/injection/names.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { ARBITRARY_POD } from './arbitrary-pods.ts';
import { POD_FIXTURES } from './fixtures.ts';

/** The environment of the gateway, expanded as the kubelet does; undefined: the pod was refused. */
function environmentOf(pod: Pod): Readonly<Record<string, string>> | undefined {
  const injection = injectPod(pod, USUAL_OPTIONS);
  if (injection.kind === 'refused') return undefined;
  const gateway = injection.pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
  return Object.fromEntries((gateway?.env ?? []).map(({ name, value = '' }) => [name, expanded(value)]));
}

/** References to variables and doubled signs, from left to right; no variable here has a value. */
function expanded(value: string): string {
  return value.replace(/\$\$|\$\(([^)]*)\)/g, (found, name) => (found === '$$' ? '$' : `the value of ${name}`));
}

function probesOf(environment: Readonly<Record<string, string>>): AppProbeSettings {
  const problems = new ProblemList();
  const probes = readAppProbes(environment, problems);
  problems.throwIfAny();
  return probes;
}

describe('what injection writes into the environment of the gateway', () => {
  it('is what the gateway starts with, for every fixture', () => {
    for (const { name, pod, refused } of POD_FIXTURES) {
      const environment = environmentOf(pod);
      assert.equal(environment === undefined, refused, name);
      if (environment === undefined) continue;
      probesOf(environment);
      const settings = processSettings(environment);
      assert.equal(settings.drainSeconds, 5);
      assert.equal(
        settings.drainBudgetSeconds,
        Number(pod.metadata?.annotations?.['agent-commerce.dev/drain-seconds'] ?? 75),
      );
      assert.equal(settings.merchantGraceSeconds, pod.spec.terminationGracePeriodSeconds ?? 30);
    }
  });

  it('is what the gateway starts with, for any pod', () => {
    fc.assert(
      fc.property(ARBITRARY_POD, (pod) => {
        const environment = environmentOf(pod);
        fc.pre(environment !== undefined);
        probesOf(environment);
        processSettings(environment);
      }),
      { numRuns: 500 },
    );
  });

  it('makes the gateway send what the kubelet would have sent', () => {
    const { pod } = POD_FIXTURES.find(({ name }) => name === 'odd-text') ?? assert.fail();
    assert.deepEqual(probesOf(environmentOf(pod) ?? {}), {
      liveness: {
        scheme: 'http',
        port: 8080,
        target: '/live/$(NAME)/$$(NAME)/$$$x/"quoted"/it\'s/\\back',
        headers: [],
      },
      readiness: {
        scheme: 'http',
        port: 8080,
        target: '/bereit/gr%C3%B6%C3%9Fe?q=%E6%97%A5%E6%9C%AC%20%F0%9F%98%80&a=%2F',
        headers: [
          ['X-Text', Buffer.from('a: b "c" $(NAME) ü').toString('latin1')],
          ['X-Empty', ''],
        ],
      },
      startup: { scheme: 'http', port: 8080, target: '/@registry.example/', headers: [] },
    });
  });
});
