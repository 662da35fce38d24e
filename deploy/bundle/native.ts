/** The bundler plugin that puts the native library of signatures beside the chunks. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Plugin } from 'rolldown';

const require = createRequire(import.meta.url);

/** Where the addon of a platform is in the package, as its loader looks for it. */
const PREBUILT = `prebuilds/${process.platform}-${process.arch}`;
/** Another C library than that of the bases. */
const FOREIGN = /\.musl\.node$/;

/** What `secp256k1/bindings.js` reads. The main file, a slow script, is not among it. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  secp256k1: ['package.json', 'LICENSE', 'bindings.js', 'lib/index.js', 'lib/uint8array.js'],
  'node-gyp-build': ['package.json', 'LICENSE', 'index.js', 'node-gyp-build.js'],
};

/** The packages that `nativeRecovery` puts beside the chunks, with the folder of each. */
export function nativePackages(): ReadonlyMap<string, string> {
  const folders = new Map<string, string>();
  const addons = prebuilt();
  if (addons.length === 0) return folders;
  for (const name of Object.keys(FILES)) folders.set(name, dirname(require.resolve(`${name}/package.json`)));
  return folders;
}

/** Empty where the package is not installed, or has nothing for this platform. */
function prebuilt(): readonly string[] {
  try {
    const folder = join(dirname(require.resolve('secp256k1/package.json')), PREBUILT);
    return existsSync(folder) ? readdirSync(folder).filter((name) => !FOREIGN.test(name)) : [];
  } catch {
    return [];
  }
}

/**
 * Copies libsecp256k1 as the package has it for the platform of the build: nothing is compiled, and
 * no install script runs. On another platform the same library runs as WebAssembly, four times
 * slower.
 */
export function nativeRecovery(): Plugin {
  return {
    name: 'native-recovery',
    generateBundle() {
      for (const [name, folder] of nativePackages()) {
        const addons = name === 'secp256k1' ? prebuilt().map((file) => `${PREBUILT}/${file}`) : [];
        for (const file of [...(FILES[name] ?? []), ...addons]) {
          const fileName = `node_modules/${name}/${file}`;
          this.emitFile({ type: 'asset', fileName, source: readFileSync(join(folder, file)) });
        }
      }
    },
  };
}
