/** The bundler plugin that writes what the bundle is made of, as CycloneDX. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { OutputBundle, Plugin } from 'rolldown';
import { nativePackages } from './native.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const INSTALLED = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)(?:[\\/]|$)/;

/** The name of the bill of materials beside the bundle. */
export const SBOM_NAME = 'sbom.json';

/** The helpers that the bundler writes into what it makes. */
const BUNDLER_RUNTIME = /^\0?rolldown[\\/]runtime\.js$/;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** A package as a component of CycloneDX 1.6. */
interface Component {
  readonly type: 'library' | 'application';
  readonly 'bom-ref': string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly licenses: readonly object[];
  readonly purl: string;
  readonly hashes?: readonly object[];
}

/** Lists the packages of which a module or a file is in the bundle, and no other. */
export function billOfMaterials(): Plugin {
  return {
    name: 'bill-of-materials',
    generateBundle: {
      // After the plugins that add files.
      order: 'post',
      handler(_options, bundle: OutputBundle) {
        const folders = new Set([...foldersOf(bundle), ...nativePackages().values()]);
        this.emitFile({ type: 'asset', fileName: SBOM_NAME, source: `${JSON.stringify(bill(folders), null, 2)}\n` });
      },
    },
  };
}

/** The folders of the packages whose code is in a chunk. */
function foldersOf(bundle: OutputBundle): readonly string[] {
  const ids = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? rendered(file.modules) : []));
  return ids.flatMap((id) => {
    const folder = BUNDLER_RUNTIME.test(id) ? join(ROOT, 'node_modules/rolldown') : INSTALLED.exec(id)?.[1];
    return folder === undefined ? [] : [folder];
  });
}

function rendered(modules: Readonly<Record<string, { readonly renderedLength: number }>>): readonly string[] {
  return Object.entries(modules).flatMap(([id, { renderedLength }]) => (renderedLength > 0 ? [id] : []));
}

function bill(folders: ReadonlySet<string>): object {
  const integrity = lockedIntegrity();
  const components = [...folders]
    .map((folder) => component(manifestIn(folder), 'library', integrity(folder)))
    .sort((one, other) => (one.purl < other.purl ? -1 : 1));
  const gateway = component(manifestIn(ROOT), 'application');
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: gateway },
    // A package may be installed twice in one version.
    components: components.filter(({ purl }, at) => components[at - 1]?.purl !== purl),
    dependencies: [{ ref: gateway['bom-ref'], dependsOn: [...new Set(components.map((one) => one['bom-ref']))] }],
  };
}

function component({ name, version, license }: Manifest, type: Component['type'], integrity?: string): Component {
  const [group, short] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return {
    type,
    'bom-ref': purl,
    ...(group === undefined ? {} : { group }),
    name: short ?? name,
    version,
    licenses: [/ (?:OR|AND|WITH) /.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
    ...(integrity === undefined ? {} : { hashes: [sha512(integrity)] }),
  };
}

function sha512(integrity: string): object {
  const content = Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
  return { alg: 'SHA-512', content };
}

/** @throws Error for a package that does not say what it is or how it is licensed */
function manifestIn(folder: string): Manifest {
  const { name, version, license }: Partial<Manifest> = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (name === undefined || version === undefined || typeof license !== 'string')
    throw new Error(`${folder}: package.json names no version or no licence`);
  return { name, version, license };
}

/** The hash of each package's archive, by the folder that npm unpacked it into. */
function lockedIntegrity(): (folder: string) => string | undefined {
  const path = join(ROOT, 'package-lock.json');
  if (!existsSync(path)) return () => undefined;
  const { packages }: { readonly packages: Readonly<Record<string, { readonly integrity?: string }>> } = JSON.parse(
    readFileSync(path, 'utf8'),
  );
  return (folder) => packages[folder.slice(folder.indexOf('node_modules')).replaceAll('\\', '/')]?.integrity;
}
