import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SBOM_NAME } from '../../deploy/bundle/sbom.ts';
import { gatewayBundle } from '../support/bundle.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGE = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/;

interface Component {
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: readonly { readonly license?: { readonly id: string }; readonly expression?: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

interface Bill {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

function manifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

function told({ group, name, version, licenses: [first] }: Component): string {
  return `${group === undefined ? name : `${group}/${name}`} ${version} ${first?.license?.id ?? first?.expression}`;
}

describe('the bill of materials', () => {
  const work = mkdtempSync(join(tmpdir(), 'sbom-'));
  let dist = '';
  let bill: Bill;

  before(async () => {
    dist = dirname(await gatewayBundle(join(work, 'dist')));
    bill = JSON.parse(readFileSync(join(dist, SBOM_NAME), 'utf8'));
  });
  after(() => rmSync(work, { recursive: true, force: true }));

  /** From the maps of the chunks and the folders beside them, which the plugin does not read. */
  const contained = (): ReadonlySet<string> => {
    const folders = new Set<string>([join(ROOT, 'node_modules/rolldown')]);
    for (const map of globSync('chunks/*.map', { cwd: dist })) {
      const { sources }: { readonly sources: readonly string[] } = JSON.parse(readFileSync(join(dist, map), 'utf8'));
      for (const source of sources) {
        const [folder] = PACKAGE.exec(resolve(dist, 'chunks', source)) ?? [];
        if (folder !== undefined) folders.add(folder);
      }
    }
    for (const name of readdirSync(join(dist, 'node_modules'))) folders.add(join(ROOT, 'node_modules', name));
    return folders;
  };

  it('names every package that the bundle contains with version and licence, and no other', () => {
    const expected = [...contained()]
      .map(manifest)
      .map(({ name, version, license }) => `${name} ${version} ${license}`);
    assert.ok(expected.length > 50);
    assert.deepEqual(bill.components.map(told).sort(), [...new Set(expected)].sort());
  });

  it('leaves out what is installed and not bundled', () => {
    const names = new Set(bill.components.map(({ name }) => name));
    for (const name of ['typescript', 'fast-check', 'body-parser', 'iconv-lite', 'elliptic'])
      assert.ok(!names.has(name), name);
  });

  it('is CycloneDX 1.6 of this release', () => {
    const { version, license } = manifest(ROOT);
    assert.deepEqual([bill.bomFormat, bill.specVersion], ['CycloneDX', '1.6']);
    assert.equal(told(bill.metadata.component), `agent-commerce-gateway ${version} ${license}`);
    const purls = bill.components.map(({ purl }) => purl);
    assert.equal(new Set(purls).size, purls.length);
    assert.deepEqual(bill.dependencies, [{ ref: bill.metadata.component.purl, dependsOn: purls }]);
    for (const { purl } of bill.components) assert.match(purl, /^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+/);
  });

  it('gives each package the hash of its archive in the lockfile', () => {
    const { packages }: { readonly packages: Readonly<Record<string, { readonly integrity?: string }>> } = JSON.parse(
      readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
    );
    const express = bill.components.find(({ name }) => name === 'express');
    const digest = Buffer.from(packages['node_modules/express']?.integrity?.slice('sha512-'.length) ?? '', 'base64');
    assert.equal(digest.length, 64);
    assert.deepEqual(express?.hashes, [{ alg: 'SHA-512', content: digest.toString('hex') }]);
  });
});
