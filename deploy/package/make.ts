/**
 * `make package`: writes the npm package into `dist/package` and packs it into `dist/`. It needs no
 * other package: `acg` and the library are bundles.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { packageOptions } from '../bundle/options.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The entry of the library, as the compiler writes its types. */
const LIBRARY_TYPES = 'src/library.d.ts';
/** What is taken from the repository as it is: the documents, and all that they link to. */
const COPIED = [
  ...['schemas', 'docs', 'deploy'],
  ...['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'LICENSE', 'CHANGELOG.md'],
] as const;
/**
 * What only builds needs the sources, and the secrets that the development overlay generates are of
 * this machine.
 */
const LEFT_OUT = /^deploy\/(?:bundle|package|Dockerfile|overlays\/dev\/secrets\/(?!generate\.sh))|\.ts$|\/\.gitignore$/;
/** The optional packages that the commands of the package use: the local chain. */
const LOCAL_CHAIN = /^@foundry-rs\/anvil-/;
/** `from './x.ts'` and `import('./x.ts')`. */
const IMPORT = /(\bfrom\s*|\bimport\(\s*)(['"])(\.{1,2}\/[^'"]+)\.ts\2/g;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: object;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Writes the package into a folder, which is emptied first. */
export async function writePackage(folder: string): Promise<void> {
  const { output, ...input } = packageOptions(folder);
  const bundle = await rolldown({ ...input, logLevel: 'warn' });
  await bundle.write(output);
  await bundle.close();
  const filter = (path: string): boolean => !LEFT_OUT.test(relative(ROOT, path));
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter });
  writeTypes(join(folder, 'types'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
}

/** Packs a written package into another folder. @returns the path of the archive */
export function pack(folder: string, into: string): string {
  const out = execFileSync('npm', ['pack', folder, '--pack-destination', into, '--json'], { encoding: 'utf8' });
  const [{ filename }] = JSON.parse(out) as readonly [{ readonly filename: string }];
  return join(into, filename);
}

function manifest(): object {
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  const { name, version, description, license, engines, optionalDependencies } = own;
  const chain = Object.entries(optionalDependencies).filter(([dependency]) => LOCAL_CHAIN.test(dependency));
  return {
    ...{ name, version, description, license, type: 'module', engines },
    bin: { acg: 'acg.mjs' },
    exports: {
      '.': { types: `./types/${LIBRARY_TYPES}`, default: './library.mjs' },
      './schemas/*': './schemas/*',
      './package.json': './package.json',
    },
    optionalDependencies: Object.fromEntries(chain),
  };
}

/** The types of the library: its own file, and those that it names. */
function writeTypes(folder: string): void {
  const all = mkdtempSync(join(tmpdir(), 'types-'));
  try {
    compileTypes(all);
    const needed = new Set([join(all, LIBRARY_TYPES)]);
    for (const file of needed) {
      const text = readFileSync(file, 'utf8');
      for (const [, , , name] of text.matchAll(IMPORT)) needed.add(resolve(dirname(file), `${name}.d.ts`));
      const target = join(folder, relative(all, file));
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, text.replaceAll(IMPORT, '$1$2$3.js$2'));
    }
  } finally {
    rmSync(all, { recursive: true, force: true });
  }
}

/**
 * Declares what the library reaches, unchecked: `make check` reports errors of types. What the
 * library does not name may have no name to be declared by, and a module that it needs is missed.
 */
function compileTypes(folder: string): void {
  const compiler = join(ROOT, 'node_modules/.bin/tsc');
  try {
    execFileSync(compiler, ['--project', 'deploy/package', '--outDir', folder], { cwd: ROOT, stdio: 'ignore' });
  } catch {
    // The compiler ends with an error for what has no name.
  }
}

if (import.meta.main) {
  const folder = join(ROOT, 'dist/package');
  await writePackage(folder);
  process.stdout.write(`${relative(process.cwd(), pack(folder, join(ROOT, 'dist')))}\n`);
}
