import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { POD_FIXTURES } from '../../spec/sidecar/injection/fixtures.ts';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import * as names from '../../src/sidecar/injection/names.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type ClusterObject, mountParameters, optionsAt, rendered } from './clusters.ts';
import { differences, faultsOf, type Outcome } from './outcome.ts';

interface Policy extends ClusterObject {
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConstraints: { readonly namespaceSelector: object };
    readonly variables?: readonly { readonly name: string; readonly expression: string }[];
    readonly validations?: readonly {
      readonly expression: string;
      readonly message: string;
      readonly messageExpression?: string;
    }[];
  };
}

interface Binding extends ClusterObject {
  readonly spec: { readonly policyName: string; readonly paramRef?: { readonly parameterNotFoundAction: string } };
}

const objects = rendered('validating');
const policies = objects.filter((object): object is Policy => object.kind.endsWith('AdmissionPolicy'));
const bindings = objects.filter((object): object is Binding => object.kind.endsWith('PolicyBinding'));

/** The refused pods that would run past the gateway. */
const WAYS_PAST = /^refused-(?:host-network|port-clash|sidecar-port-clash|port-name-clash|steering|mount)/;

function named(name: string): Policy {
  const found = policies.find(({ metadata }) => metadata.name === name);
  assert.ok(found, name);
  return found;
}

const validating = named('agent-commerce-require-gateway');

function expressionsOf({ spec }: Policy): readonly string[] {
  return [
    ...(spec.variables ?? []).map(({ expression }) => expression),
    ...(spec.validations ?? []).flatMap(({ expression, messageExpression = '' }) => [expression, messageExpression]),
  ];
}

/** The texts between quotes of an expression. */
function literals(expression: string): readonly string[] {
  return [...expression.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/g)].map(([, one, two]) => one ?? two ?? '');
}

function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

describe('the policies of deploy/admission', () => {
  it('are rendered with the parameters that they read', () => {
    assert.deepEqual(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
      'ConfigMap agent-commerce-injection',
      'ValidatingAdmissionPolicy agent-commerce-no-debug-containers',
      'ValidatingAdmissionPolicy agent-commerce-require-gateway',
      'ValidatingAdmissionPolicyBinding agent-commerce-asked-for',
      'ValidatingAdmissionPolicyBinding agent-commerce-enforced',
      'ValidatingAdmissionPolicyBinding agent-commerce-no-debug-containers',
    ]);
  });

  it('inject with the usual options unless the operator changes them', async () => {
    await using ends = new AsyncDisposableStack();
    const mounted = await temporaryDirectory(ends, 'parameters-');
    mountParameters(mounted);
    assert.deepEqual(optionsAt(mounted), USUAL_OPTIONS);
  });

  it('fail closed, and each is bound', () => {
    for (const { metadata, spec } of policies) {
      assert.equal(spec.failurePolicy, 'Fail', metadata.name);
      assert.ok(
        bindings.some((binding) => binding.spec.policyName === metadata.name),
        metadata.name,
      );
    }
    for (const { metadata, spec } of bindings.filter((binding) => binding.spec.paramRef !== undefined))
      assert.equal(spec.paramRef?.parameterNotFoundAction, 'Deny', metadata.name);
  });

  it('leave the namespaces of the system alone, all the same ones', () => {
    for (const { metadata, spec } of policies)
      assert.deepEqual(
        spec.matchConstraints.namespaceSelector,
        {
          matchExpressions: [
            {
              key: 'kubernetes.io/metadata.name',
              operator: 'NotIn',
              values: ['kube-system', 'kube-node-lease', 'kube-public', 'agent-commerce-system'],
            },
          ],
        },
        metadata.name,
      );
  });

  it('read only names that injectPod has, and guard all its paths', () => {
    const known = new Set([...textsOf(names), 'agent-commerce-injection', 'agent-commerce-system']);
    const used = new Set(policies.flatMap(expressionsOf).flatMap(literals));
    const isName = (text: string): boolean => /^(?:agent-|[\w.]+\.(?:dev|io)\/|\/[a-z])/.test(text);
    assert.deepEqual(
      [...used].filter((text) => isName(text) && !known.has(text) && !text.includes(' ')),
      [],
    );
    assert.deepEqual(
      names.GUARDED_PATHS.filter((path) => !used.has(path)),
      [],
    );
  });

  it('refuse in the words of injectPod', () => {
    const expressions = (validating.spec.variables ?? []).filter(({ name }) => name === 'refusal');
    const sentences = expressions
      .flatMap(({ expression }) => expression.split('\n'))
      // What is looked up is not said.
      .map((line) => literals(line.replace(/(?:\[|\.(?:matches|orValue)\()(?:'[^']*'(?:, )?)+[\])]/g, '')))
      .filter((texts) => texts.some((text) => text.length > 12))
      .map(
        (texts) =>
          new RegExp(
            texts
              .filter((text) => text.length > 2)
              .map((text) => RegExp.escape(text))
              .join('.*'),
          ),
      );
    const guarded = POD_FIXTURES.filter(({ name }) => WAYS_PAST.test(name));
    assert.ok(guarded.length > 6);
    for (const { name, pod } of guarded) {
      const injection = injectPod(pod, USUAL_OPTIONS);
      const message = injection.kind === 'refused' ? injection.message : '';
      assert.ok(
        sentences.some((sentence) => sentence.test(message)),
        `${name}: ${message}`,
      );
    }
  });

  it('tell in one line each what would be right', () => {
    for (const policy of policies)
      for (const { message, expression } of policy.spec.validations ?? []) {
        assert.match(message, /^[^\n]{20,256}$/, expression);
        assert.doesNotMatch(message, /^failed/, expression);
      }
  });
});

const POD: Pod = {
  metadata: { name: 'shop' },
  spec: { containers: [{ name: 'shop' }], terminationGracePeriodSeconds: 30 },
};

it('names each member that differs by its path', () => {
  assert.deepEqual(differences(POD, structuredClone(POD)), []);
  assert.deepEqual(differences(POD, { ...POD, spec: { containers: [{ name: 'other' }], hostNetwork: true } }), [
    'spec.containers.0.name: expected "shop", came "other"',
    'spec.terminationGracePeriodSeconds: expected 30, came nothing',
    'spec.hostNetwork: expected nothing, came true',
  ]);
  assert.deepEqual(differences([1, 2], [2, 1]), ['0: expected 1, came 2', '1: expected 2, came 1']);
  assert.deepEqual(differences({ 0: 1 }, [1]), ['object: expected {"0":1}, came [1]']);
});

it('takes a refusal for a stored pod in neither direction, and other words for no refusal', () => {
  const stored: Outcome = { kind: 'stored', pod: POD };
  const refused: Outcome = { kind: 'refused', words: 'use another port' };
  assert.deepEqual(faultsOf(stored, stored), []);
  assert.deepEqual(faultsOf(refused, { kind: 'refused', words: 'denied request: use another port' }), []);
  assert.equal(faultsOf(stored, refused).length, 2);
  assert.equal(faultsOf(refused, stored).length, 2);
  assert.equal(faultsOf(refused, { kind: 'refused', words: 'denied request' }).length, 2);
});
