/** Bundler plugins that put the files which modules read into the bundle, as literals. */

import { readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import type { Plugin } from 'rolldown';

/** Text files that modules read beside themselves; `.js` is code of the console page. */
const TEXT_ASSETS = new Set(['.lua', '.html', '.css', '.js', '.svg', '.sql', '.txt']);

/** `readFileSync(new URL('./x.lua', import.meta.url), 'utf8')`: no other spelling is inlined. */
const TEXT_READ =
  /\breadFileSync\(\s*new URL\(\s*(['"])(\.{1,2}\/[^'"]+)\1\s*,\s*import\.meta\.url\s*,?\s*\)\s*,\s*(?:(['"])utf-?8\3|\{\s*encoding:\s*(['"])utf-?8\4\s*,?\s*\})\s*,?\s*\)/g;

/** Any other path relative to a module: it would point beside the bundle, where no file is. */
const RELATIVE_URL = /\bnew URL\([^)]*?\bimport\.meta\.url\b/;

const OWN_SOURCE = /\.ts$/;
const WASM_LOADER = /tiny-secp256k1[\\/]lib[\\/]wasm_loader\.js$/;
const WASM_READ = 'readFileSync(path("secp256k1.wasm"))';

function inlineText(code: string, file: string, watch: (path: string) => void): string {
  return code.replace(TEXT_READ, (_read, _quote, relative: string) => {
    const path = resolve(dirname(file), relative);
    if (!TEXT_ASSETS.has(extname(path)))
      throw new Error(`${file}: ${relative} is not a kind of text the bundle inlines`);
    watch(path);
    return JSON.stringify(readFileSync(path, 'utf8'));
  });
}

/**
 * Turns the text files that our modules read at start (Lua scripts, the console page) into string
 * literals, so that the bundle runs from an empty directory. A read in any other spelling stops the
 * build, because it would fail in the image only.
 */
export function textAssets(): Plugin {
  return {
    name: 'text-assets',
    transform: {
      filter: { id: { include: OWN_SOURCE, exclude: /node_modules/ }, code: 'import.meta.url' },
      handler(code, id) {
        const inlined = inlineText(code, id, (path) => this.addWatchFile(path));
        const left = RELATIVE_URL.exec(inlined);
        if (left !== null) {
          this.error(
            `${id}: "${left[0]}" cannot be bundled; write readFileSync(new URL('./x.lua', import.meta.url), 'utf8')`,
          );
        }
        return { code: inlined, map: null };
      },
    },
  };
}

/**
 * Puts the WebAssembly of tiny-secp256k1 (1.2 MB) into the bundle as base64; the package reads it
 * from its own folder otherwise. A release of the package that reads it differently stops the
 * build.
 */
export function secp256k1Wasm(): Plugin {
  return {
    name: 'secp256k1-wasm',
    transform: {
      filter: { id: WASM_LOADER },
      handler(code, id) {
        if (!code.includes(WASM_READ)) this.error(`${id} no longer reads its WebAssembly as "${WASM_READ}"`);
        const base64 = readFileSync(resolve(dirname(id), 'secp256k1.wasm')).toString('base64');
        return { code: code.replace(WASM_READ, `Buffer.from("${base64}", "base64")`), map: null };
      },
    },
  };
}
