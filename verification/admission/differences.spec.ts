import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { differences } from './differences.ts';
import { faultsOf, type Outcome } from './outcome.ts';

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
