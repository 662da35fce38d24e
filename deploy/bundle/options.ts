/** The options of the bundle, the one file of the image, for `rolldown.config.ts` and the specs. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { InputOptions, OutputOptions } from 'rolldown';
import { asciiComments } from './ascii.ts';
import { secp256k1Wasm, textAssets } from './assets.ts';
import { leastNode, nodeGuard, OPTIONAL_PACKAGES, selfContained } from './runtime.ts';
import { standaloneValidators } from './validators.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The one file that the image runs. */
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

/**
 * How the gateway becomes one file: every package, JSON schema, Lua script and the WebAssembly
 * inside, readable (stack traces keep their names), in ASCII (ascii.ts says why), no second file.
 * `entry` and `dir` are absolute or relative to the repository.
 */
export function bundleOptions(entry: string, dir: string): BundleOptions {
  return {
    cwd: ROOT,
    input: { gateway: entry },
    platform: 'node',
    external: OPTIONAL_PACKAGES,
    // CommonJS packages name their own folder; an ES module has no such names, and reading one
    // would throw.
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
    plugins: [
      textAssets(),
      secp256k1Wasm(),
      standaloneValidators(),
      nodeGuard(leastNode(supportedNode())),
      asciiComments(),
      selfContained(),
    ],
    output: {
      dir,
      format: 'esm',
      entryFileNames: BUNDLE_NAME,
      codeSplitting: false,
      minify: false,
      sourcemap: false,
      charset: 'ascii',
    },
  };
}
