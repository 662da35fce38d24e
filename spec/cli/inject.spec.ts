import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { readManifests } from '../../src/sidecar/injection/component.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import { injectObject } from '../../src/sidecar/injection/workloads.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { acg } from './acg.ts';

const SHOP = resolve('spec/sidecar/injection/fixtures/workloads/shop.yaml');
const PLAIN = resolve('spec/sidecar/injection/fixtures/plain.yaml');
const REFUSED = resolve('spec/sidecar/injection/fixtures/refused-host-network.yaml');

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

const folder = (): Promise<string> => temporaryDirectory(ends, 'acg-inject-');

describe('acg inject', () => {
  it('writes the manifests with the gateway, and what was not asked for as it was', async () => {
    const { code, lines, errors } = await acg(await folder(), ['inject', '-f', SHOP]);
    assert.equal(code, 0);
    const text = `${lines.join('\n')}\n`;
    const wanted = readManifests(readFileSync(SHOP, 'utf8')).map(
      ({ object }) => injectObject(object, USUAL_OPTIONS).object,
    );
    assert.deepEqual(
      readManifests(text).map(({ object }) => object),
      wanted,
    );
    assert.match(text, /name: shop # kept as it is/);
    assert.match(errors, /^warning: Job\/import: restartPolicy is Never:/);
  });

  it('reads stdin, folders and several files', async () => {
    const { stdout } = spawnSync(
      process.execPath,
      [process.env['GATEWAY_ENTRY'] ?? 'src/main.ts', 'inject', '-f', '-'],
      {
        input: JSON.stringify({ kind: 'List', items: [{ kind: 'Other' }] }),
        encoding: 'utf8',
      },
    );
    assert.deepEqual(JSON.parse(stdout), { kind: 'List', items: [{ kind: 'Other' }] });
    const where = await folder();
    for (const [name, value] of [
      ['b.yml', 'b: 1'],
      ['a.yaml', 'a: 1'],
      ['c.json', '{"c": 1}'],
      ['notes.txt', 'no manifest'],
    ] as const)
      writeFileSync(join(where, name), value);
    const { code, lines } = await acg(where, ['inject', '-f', '.', '-f', 'a.yaml']);
    assert.equal(code, 0);
    assert.deepEqual(
      readManifests(lines.join('\n')).map(({ object }) => object),
      [{ a: 1 }, { b: 1 }, { c: 1 }, { a: 1 }],
    );
  });

  it('writes nothing when one pod is refused, and says which and why', async () => {
    const { code, lines, errors } = await acg(await folder(), ['inject', '-f', PLAIN, '-f', REFUSED]);
    assert.deepEqual([code, lines], [1, []]);
    assert.equal(
      errors,
      "refused: Pod/host-network: the pod has hostNetwork: its ports would be the node's; remove hostNetwork or the opt-in label\n",
    );
  });

  it('takes image and names from the file of the injector', async () => {
    const where = await folder();
    writeFileSync(join(where, 'options.yaml'), 'image: registry.example/gateway:2\nconfigMap: prices\n');
    const { lines } = await acg(where, ['inject', '-f', PLAIN, '--options', 'options.yaml']);
    assert.match(lines.join('\n'), /image: registry\.example\/gateway:2\n[\s\S]*name: prices/);
    writeFileSync(join(where, 'options.yaml'), 'imag: x\n');
    const { code, errors } = await acg(where, ['inject', '-f', PLAIN, '--options', 'options.yaml']);
    assert.equal(code, 78);
    assert.match(errors, /imag: is no option; did you mean image\?/);
  });

  it('warns once of an image whose registry the nodes choose, and injects it all the same', async () => {
    const where = await folder();
    const injected = await acg(where, ['inject', '-f', PLAIN, '-f', SHOP]);
    const warnings = (text: string) => text.split('\n').filter((line) => line.includes('names no registry'));
    assert.deepEqual(warnings(injected.errors), [
      'warning: image agent-commerce-gateway:1.0.0 names no registry: a node asks its own default one, usually Docker Hub, where the name ' +
        'may belong to someone else; write image: registry.example.com/agent-commerce-gateway@sha256:… in the file of --options',
    ]);
    writeFileSync(join(where, 'rendered.yaml'), injected.lines.join('\n'));
    const checked = await acg(where, ['inject', '--check', '-f', 'rendered.yaml']);
    assert.deepEqual([checked.code, warnings(checked.errors).length], [0, 1]);
    for (const [image, count] of [
      ['shop/gateway:2.0', 1],
      ['localhost/gateway', 0],
      ['mirror:5000/gateway', 0],
    ] as const) {
      writeFileSync(join(where, 'options.yaml'), `image: ${image}\n`);
      const { code, errors } = await acg(where, ['inject', '-f', PLAIN, '--options', 'options.yaml']);
      assert.deepEqual([image, code, warnings(errors).length], [image, 0, count]);
    }
  });

  it('names kinds that it does not know, and injects them where it is told', async () => {
    const work = await folder();
    const rollout = readFileSync(SHOP, 'utf8')
      .split('---\n')
      .find((text) => /^kind: Deployment$/m.test(text));
    assert.ok(rollout !== undefined);
    writeFileSync(
      join(work, 'rollout.yaml'),
      rollout
        .replace(/^kind: Deployment$/m, 'kind: Rollout')
        .replace(/^apiVersion: .*$/m, 'apiVersion: argoproj.io/v1alpha1'),
    );
    const unknown = await acg(work, ['inject', '--check', '-f', 'rollout.yaml']);
    assert.equal(unknown.code, 1);
    assert.match(unknown.errors, /^warning: Rollout\/web carries the label/);
    assert.doesNotMatch(unknown.errors, /no pod is labelled/);
    const told = ['inject', '--pod-path', 'Rollout=spec.template'];
    const { code, lines } = await acg(work, [...told, '-f', 'rollout.yaml']);
    assert.equal(code, 0);
    writeFileSync(join(work, 'injected.yaml'), `${lines.join('\n')}\n`);
    assert.equal((await acg(work, [...told, '--check', '-f', 'injected.yaml'])).code, 0);
    const wrong = await acg(work, ['inject', '--pod-path', 'Rollout', '-f', 'rollout.yaml']);
    assert.equal(wrong.code, 64);
    assert.match(wrong.errors, /--pod-path "Rollout" must be a kind and the way to its pod/);
  });

  it('says that nothing asked for the gateway', async () => {
    const where = await folder();
    writeFileSync(join(where, 'a.yaml'), 'kind: Other\n');
    const { code, errors } = await acg(where, ['inject', '-f', 'a.yaml']);
    assert.equal(code, 0);
    assert.equal(errors, 'warning: no pod is labelled agent-commerce.dev/inject: enabled; nothing was injected\n');
  });

  it('checks that every pod is as injection makes it, and names the others', async () => {
    const where = await folder();
    const injected = await acg(where, ['inject', '-f', SHOP]);
    writeFileSync(join(where, 'rendered.yaml'), injected.lines.join('\n'));
    const right = await acg(where, ['inject', '--check', '-f', 'rendered.yaml']);
    assert.equal(right.code, 0);
    assert.match(right.lines.join(), /^as injection makes them: Deployment\/web, StatefulSet\/ledger, /);
    writeFileSync(join(where, 'rendered.yaml'), injected.lines.join('\n').replace('path: /routing', 'path: /ready'));
    const wrong = await acg(where, ['inject', '--check', '-f', 'rendered.yaml', '-f', PLAIN]);
    assert.equal(wrong.code, 1);
    assert.deepEqual(wrong.lines, []);
    assert.match(
      wrong.errors,
      /\nnot injected: Deployment\/web differs from what injection makes in \/spec\/initContainers\nnot injected: Pod\/plain differs/,
    );
  });

  it('writes a component of the workloads that need one', async () => {
    const where = await folder();
    mkdirSync(join(where, 'manifests'));
    writeFileSync(join(where, 'manifests/plain.yaml'), readFileSync(PLAIN));
    const { code, lines } = await acg(where, ['inject', '--component', 'gateway', '-f', 'manifests']);
    assert.equal(code, 0);
    assert.match(lines.join(), /^written: gateway\/kustomization\.yaml, /);
    assert.deepEqual(readdirSync(join(where, 'gateway')).sort(), [
      'kustomization.yaml',
      'pod-plain-metadata.yaml',
      'pod-plain.yaml',
    ]);
  });

  it('tells wrong usage', async () => {
    const where = await folder();
    for (const words of [[], ['-f', 'a', '--check', '--component', 'b'], ['-f', 'a', '--config', 'b'], ['a.yaml']])
      assert.equal((await acg(where, ['inject', ...words])).code, 64, words.join(' '));
    const { code, errors } = await acg(where, ['inject', '-f', 'absent.yaml']);
    assert.equal(code, 66);
    assert.equal(errors, 'absent.yaml: there is no such file\n');
    writeFileSync(join(where, 'broken.yaml'), 'a: [');
    assert.match((await acg(where, ['inject', '-f', 'broken.yaml'])).errors, /^broken\.yaml: document 1: /);
    assert.match((await acg(where, ['inject', '--help'])).lines.join('\n'), /--check +compare instead/);
  });

  it('writes the same text for what it wrote before', async () => {
    const where = await folder();
    const once = await acg(where, ['inject', '-f', SHOP]);
    writeFileSync(join(where, 'once.yaml'), once.lines.join('\n'));
    assert.deepEqual((await acg(where, ['inject', '-f', 'once.yaml'])).lines, once.lines);
  });
});
