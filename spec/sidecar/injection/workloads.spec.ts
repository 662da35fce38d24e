import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readManifests } from '../../../src/sidecar/injection/component.ts';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { injectObject, titleOf } from '../../../src/sidecar/injection/workloads.ts';

const SHOP = readManifests(readFileSync(new URL('fixtures/workloads/shop.yaml', import.meta.url), 'utf8')).map(
  ({ object }) => object,
);
const ENABLED = { 'agent-commerce.dev/inject': 'enabled' };
const TEMPLATE = { spec: { containers: [{ name: 'shop', ports: [{ containerPort: 8080 }] }] } };

function deployment(labels: object, template: object = TEMPLATE): object {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'shop', labels }, spec: { template } };
}

describe('injection of workloads', () => {
  it('finds the pods of every kind that keeps one, by the label of the pod or of the workload', () => {
    const found = SHOP.flatMap((object) => injectObject(object, USUAL_OPTIONS).workloads);
    assert.deepEqual(found.map(titleOf), [
      'Deployment/web',
      'StatefulSet/ledger',
      'DaemonSet/edge',
      'ReplicaSet/old',
      'Job/import',
      'CronJob/nightly.report',
      'Pod/single',
    ]);
    for (const { injection, pod } of found) assert.deepEqual(injection, injectPod(pod, USUAL_OPTIONS));
  });

  it('puts the injected pod where the pod was, and keeps the order of what was there', () => {
    const object = {
      kind: 'CronJob',
      apiVersion: 'batch/v1',
      spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: TEMPLATE, backoffLimit: 2 } }, suspend: false },
      metadata: { labels: ENABLED, name: 'nightly' },
    };
    const made = injectObject(object, USUAL_OPTIONS).object as typeof object;
    assert.deepEqual(Object.keys(made), Object.keys(object));
    assert.deepEqual(Object.keys(made.spec), Object.keys(object.spec));
    const injection = injectPod(TEMPLATE as Pod, USUAL_OPTIONS);
    assert.deepEqual(made.spec.jobTemplate.spec.template, injection.kind === 'injected' && injection.pod);
    assert.equal(made.spec.jobTemplate.spec.backoffLimit, 2);
  });

  it('reads lists inside lists', () => {
    const list = { kind: 'List', items: [{ kind: 'DeploymentList', items: [deployment(ENABLED)] }, deployment({})] };
    const { object, workloads } = injectObject(list, USUAL_OPTIONS);
    assert.equal(workloads.length, 1);
    assert.deepEqual(object, {
      ...list,
      items: [
        { kind: 'DeploymentList', items: [injectObject(deployment(ENABLED), USUAL_OPTIONS).object] },
        deployment({}),
      ],
    });
  });

  it('gives back the very object where nothing asks for the gateway', () => {
    const others = [
      deployment({}),
      deployment({ 'agent-commerce.dev/inject': 'disabled' }),
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', labels: ENABLED } },
      'text',
      null,
    ];
    for (const object of others) {
      const passed = injectObject(object, USUAL_OPTIONS);
      assert.equal(passed.object, object);
      assert.deepEqual([passed.workloads, passed.doubts], [[], []]);
    }
  });

  it('doubts labels that look like the one that asks', () => {
    const doubtsOf = (labels: object): readonly string[] => injectObject(deployment(labels), USUAL_OPTIONS).doubts;
    assert.deepEqual(doubtsOf({ 'agent-commerce.dev/inject': 'true' }), [
      'Deployment/shop has the label "agent-commerce.dev/inject": "true"; only agent-commerce.dev/inject: enabled asks for the gateway',
    ]);
    assert.equal(doubtsOf({ 'agent-commerce.dev/injected': 'true' }).length, 1);
  });

  describe('names a labelled pod of a kind that it does not know', () => {
    const pod = { metadata: { labels: ENABLED }, spec: { containers: [{ name: 'web', image: 'shop:1' }] } };
    const ONE = 'carries the label, and its kind is not one that this command changes';
    for (const [apiVersion, kind, members, path] of [
      ['argoproj.io/v1alpha1', 'Rollout', { spec: { template: pod } }, 'spec.template'],
      ['apps.openshift.io/v1', 'DeploymentConfig', { spec: { template: pod } }, 'spec.template'],
      ['v1', 'ReplicationController', { spec: { template: pod } }, 'spec.template'],
      ['v1', 'PodTemplate', { template: pod }, 'template'],
      ['apps.kruise.io/v1alpha1', 'CloneSet', { spec: { template: pod } }, 'spec.template'],
      ['serving.knative.dev/v1', 'Service', { spec: { template: pod } }, 'spec.template'],
      ['batch.volcano.sh/v1alpha1', 'Job', { spec: { tasks: [{ template: pod }] } }, undefined],
    ] as const)
      it(`${kind} of ${apiVersion}`, () => {
        const object = { apiVersion, kind, metadata: { name: 'shop' }, ...members };
        const advice = path === undefined ? '' : `write --pod-path ${kind}=${path}, or `;
        const doubt = `${kind}/shop ${ONE}: ${advice}use the webhook`;
        const passed = injectObject({ kind: 'List', items: [object] }, USUAL_OPTIONS);
        assert.deepEqual([passed.workloads, passed.doubts], [[], [doubt]]);
        const quiet = JSON.parse(JSON.stringify(object).replaceAll('"enabled"', '"disabled"')) as unknown;
        assert.deepEqual(injectObject(quiet, USUAL_OPTIONS).doubts, []);
        if (path === undefined) return;
        const [workload] = injectObject(object, USUAL_OPTIONS, { [kind]: path.split('.') }).workloads;
        assert.equal(workload?.injection.kind, 'injected');
      });
  });

  it('refuses a workload without a pod', () => {
    const [workload] = injectObject({ ...deployment(ENABLED), spec: {} }, USUAL_OPTIONS).workloads;
    assert.deepEqual(workload?.injection, { kind: 'refused', message: 'pod must be a mapping' });
  });
});
