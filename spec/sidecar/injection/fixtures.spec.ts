import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import { POD_FIXTURES } from './fixtures.ts';

/** What the author of the pod is told; other fixtures are injected without a word. */
const SAID: Readonly<Record<string, readonly string[]>> = {
  'grace-none': [
    'agent-commerce.dev/drain-seconds is 60, less than the usual 75: the gateway does not start when its calls may need longer; acg validate prints the right value',
  ],
  job: [
    'restartPolicy is OnFailure: when container shop ends by itself no hook runs, and calls that still need it fail',
  ],
  'no-port': [
    'container shop declares no containerPort, so MERCHANT_BASE_URL is not set; declare it or write agent-commerce.dev/upstream-port',
  ],
  'prestop-elsewhere': [
    'container shop keeps its own preStop (httpGet to another host); it must last 75 s, or sales lose the merchant: use httpGet or sleep, which the gateway runs when all is sold',
  ],
  'prestop-exec': [
    'container shop keeps its own preStop (exec); it must last 75 s, or sales lose the merchant: use httpGet or sleep, which the gateway runs when all is sold',
  ],
  'probes-not-http': [
    "the livenessProbe of container shop is a grpc probe, which goes to the pod's address: a merchant that listens on 127.0.0.1 fails it; use httpGet or exec",
    "the startupProbe of container shop is a tcpSocket probe, which goes to the pod's address: a merchant that listens on 127.0.0.1 fails it; use httpGet or exec",
  ],
  'refused-container-name': ["a container is named agent-commerce-gateway, which is the gateway's name; rename it"],
  'refused-default-container': [
    'kubectl.kubernetes.io/default-container names "gone", which is no container of the pod; it has shop, of which agent-commerce.dev/upstream-container names one',
  ],
  'refused-drain-seconds': ['agent-commerce.dev/drain-seconds is "90s"; write whole seconds, such as "75"'],
  'refused-empty-port-name': [
    'agent-commerce.dev/upstream-port names port "", which container shop does not declare; declare it or write the number',
  ],
  'refused-header-lines': [
    'the readinessProbe of container shop sends header "X-A" with a line break; a header is one line',
  ],
  'refused-hook-port-name': [
    'the preStop of container shop names port "web", which container shop does not declare; declare it or write the number',
  ],
  'refused-host-network': [
    "the pod has hostNetwork: its ports would be the node's; remove hostNetwork or the opt-in label",
  ],
  'refused-lost-probe': [
    "the livenessProbe of container shop already asks the gateway, and what it asked before is lost; write the merchant's own",
  ],
  'refused-mount-by-steps': [
    'container agent-commerce-gateway has a mount at /data/../app, over files of the gateway or with .. in it; use another path',
  ],
  'refused-mount-over-code': [
    'container agent-commerce-gateway has a mount at //app/gateway.mjs, over files of the gateway or with .. in it; use another path',
  ],
  'refused-mount-over-configuration': [
    'container agent-commerce-gateway has a mount at /etc/agent-commerce/, over files of the gateway or with .. in it; use another path',
  ],
  'refused-port-clash': ['container shop declares port 8402, on which the gateway listens; use another port'],
  'refused-port-name-clash': [
    'container shop names a port agent-http, which is a port of the gateway; use another name',
  ],
  'refused-port-number': ['agent-commerce.dev/upstream-port is "80800"; a port is a number from 1 to 65535'],
  'refused-probe-port-name': [
    'the readinessProbe of container shop names port "web", which container shop does not declare; declare it or write the number',
  ],
  'refused-rewrite-probes': ['agent-commerce.dev/rewrite-probes is "no"; write "true" or "false"'],
  'refused-sidecar-port-clash': [
    'container metrics declares port 8403, on which the gateway listens; use another port',
  ],
  'refused-steering-variable': [
    'container agent-commerce-gateway has variable NODE_OPTIONS, which could change what its image runs or whom it asks; remove it',
  ],
  'refused-unknown-container': [
    'agent-commerce.dev/upstream-container names "shopp", which is no container of the pod; it has shop, of which agent-commerce.dev/upstream-container names one',
  ],
  'refused-unknown-port-name': [
    'agent-commerce.dev/upstream-port names port "web", which container shop does not declare; declare it or write the number',
  ],
  'refused-volume-clash': [
    "the pod has a volume agent-commerce-secret of its own, which is the gateway's name; rename it",
  ],
  'refused-windows': ['the pod runs on Windows, for which the gateway has no image; remove the opt-in label'],
  teaching: [
    'annotation "agent-commerce.dev/drain-second" is not read; did you mean agent-commerce.dev/drain-seconds?',
    'agent-commerce.dev/inject is a label; as an annotation it means nothing',
    'annotation "agent-commerce.dev/image" is not read; known are agent-commerce.dev/upstream-container, agent-commerce.dev/upstream-port, agent-commerce.dev/drain-seconds, agent-commerce.dev/rewrite-probes',
    'container shop has hostPort 8080: callers of the node reach it past the gateway, unpaid',
    'shareProcessNamespace lets other containers of the pod read the secrets of the gateway through /proc',
  ],
};

describe('the fixtures of injection', () => {
  for (const { name, pod, refused } of POD_FIXTURES)
    it(`${name} is ${refused ? 'refused' : 'injected'} in the words above`, () => {
      const injection = injectPod(pod, USUAL_OPTIONS);
      assert.equal(injection.kind, refused ? 'refused' : 'injected');
      const said = injection.kind === 'refused' ? [injection.message] : injection.warnings;
      assert.deepEqual(said, SAID[name] ?? []);
    });

  it('are all there', () => {
    const known = new Set(POD_FIXTURES.map(({ name }) => name));
    assert.deepEqual(
      Object.keys(SAID).filter((name) => !known.has(name)),
      [],
    );
    assert.ok(POD_FIXTURES.length >= 40);
  });
});
