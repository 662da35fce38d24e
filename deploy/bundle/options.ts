/** The options of the bundles: of the image, of the package, and of programs of a checkout. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { InputOptions, OutputOptions } from 'rolldown';
import { asciiComments } from './ascii.ts';
import { secp256k1Wasm, textAssets } from './assets.ts';
import { chunksOfStart } from './chunks.ts';
import { leanSchema } from './lean-schema.ts';
import { nativeRecovery } from './native.ts';
import { http2OnDemand, packageParts } from './parts.ts';
import { builtinModules, launch, leastNode, OPTIONAL_PACKAGES, reexport, selfContained } from './runtime.ts';
import { billOfMaterials } from './sbom.ts';
import { standaloneValidators } from './validators.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The file that the image runs. */
export const BUNDLE_NAME = 'gateway.mjs';

function supportedNode(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'engines' in manifest) {
    const engines = manifest.engines;
    if (typeof engines === 'object' && engines !== null && 'node' in engines && typeof engines.node === 'string') {
      return engines.node;
    }
  }
  throw new Error('package.json names no engines.node');
}

/** What `rolldown -c` and `build()` both take. */
export interface BundleOptions extends InputOptions {
  readonly output: OutputOptions;
}

/** The bundle of the image. `entry` and `dir`: absolute, or relative to the repository. */
export function bundleOptions(entry: string, dir: string): BundleOptions {
  const { plugins, ...shared } = sharedOptions(dir);
  return {
    ...shared,
    input: { gateway: entry },
    plugins: [
      ...plugins,
      nativeRecovery(),
      billOfMaterials(),
      launch(BUNDLE_NAME, 'gateway', leastNode(supportedNode())),
    ],
  };
}

/** The bundle of the package: `acg.mjs` with every command, and `library.mjs` beside it. */
export function packageOptions(dir: string): BundleOptions {
  const { plugins, output, ...shared } = sharedOptions(dir);
  return {
    ...shared,
    input: { acg: 'tools/acg.ts', library: 'src/library.ts' },
    plugins: [
      ...plugins,
      billOfMaterials(),
      launch('acg.mjs', 'acg', leastNode(supportedNode())),
      reexport('library.mjs', 'library'),
    ],
    // The package has no maps: they are larger than all the rest of it.
    output: { ...output, sourcemap: false },
  };
}

/**
 * Programs of a checkout as they are in a bundle, each in a file of the same path below `dir`.
 * `sources`: relative to the repository.
 */
export function checkoutOptions(sources: readonly string[], dir: string): BundleOptions {
  const { output, ...shared } = sharedOptions(dir);
  return {
    ...shared,
    input: Object.fromEntries(sources.map((source) => [source, source])),
    // Not the chunks of a gateway's start: a command that reads no configuration loads none of it.
    output: { ...output, codeSplitting: true, entryFileNames: '[name]', sourcemap: false },
  };
}

/**
 * How the gateway becomes one folder: every package, JSON schema, Lua script and the WebAssembly
 * inside, readable (stack traces keep their names), in ASCII (ascii.ts says why). What a process
 * may never need is in chunks of its own, which are the dynamic imports of the sources. Beside them
 * are their maps and the bill of materials.
 */
function sharedOptions(dir: string) {
  return {
    cwd: ROOT,
    platform: 'node',
    external: OPTIONAL_PACKAGES,
    // CommonJS packages name their own folder; an ES module has no such names, and reading one
    // would throw.
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
    plugins: [
      packageParts(),
      http2OnDemand(),
      textAssets(),
      leanSchema(),
      secp256k1Wasm(),
      standaloneValidators(),
      builtinModules(),
      asciiComments(),
      selfContained(),
    ],
    output: {
      dir,
      cleanDir: true,
      format: 'esm',
      entryFileNames: 'chunks/[name]-[hash].mjs',
      chunkFileNames: 'chunks/[name]-[hash].mjs',
      codeSplitting: { groups: [chunksOfStart()] },
      // Names stay in stack traces, and the maps have the lines.
      minify: { compress: true, mangle: false },
      comments: { legal: true, annotation: false, jsdoc: false },
      sourcemap: true,
      charset: 'ascii',
    },
  } satisfies InputOptions & { readonly output: OutputOptions };
}
