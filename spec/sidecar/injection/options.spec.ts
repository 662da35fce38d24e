import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConfigError } from '../../../src/problems/problem.ts';
import { readOptions, USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';

/** What is wrong with the file, as `path: message`. */
function problemsOf(text: string): readonly string[] {
  try {
    readOptions(text);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.problems.map(({ path, message }) => `${path}: ${message}`);
    throw thrown;
  }
  return [];
}

describe("the injector's options", () => {
  it('are the usual ones where the file says nothing', () => {
    assert.deepEqual(readOptions(''), USUAL_OPTIONS);
    assert.deepEqual(readOptions('{}'), USUAL_OPTIONS);
  });

  it('take what the file says and keep the rest', () => {
    assert.deepEqual(readOptions('image: registry.example/gateway@sha256:ab\nresources: {requests: {cpu: 100m}}'), {
      ...USUAL_OPTIONS,
      image: 'registry.example/gateway@sha256:ab',
      resources: { requests: { cpu: '100m', memory: '96Mi' }, limits: { memory: '192Mi' } },
    });
  });

  it('name every mistake and what would be right', () => {
    assert.deepEqual(problemsOf('imag: x\nports: {management: 70000}\nsecretKeys: [ADMIN_TOKEN, ADMIN_TOKEN]'), [
      'imag: is no option; did you mean image?',
      'secretKeys: must be a list of names such as ADMIN_TOKEN, each once',
      'ports.management: must be a port from 1 to 65535',
    ]);
    assert.deepEqual(problemsOf('ports: {agents: 8403}'), ['ports: agents and management must differ']);
    assert.deepEqual(problemsOf('resources: small'), ['resources: must be a mapping of requests, limits']);
    assert.deepEqual(problemsOf('- image'), [
      'document: must be a mapping of image, imagePullPolicy, configMap, secret, secretKeys, ports, drainSeconds, resources',
    ]);
  });

  it('are no file of tricks', () => {
    assert.match(problemsOf('image: [').join(), /^document: /);
    assert.match(problemsOf('a: &a [1]\nimage: *a').join(), /lias/);
  });
});
