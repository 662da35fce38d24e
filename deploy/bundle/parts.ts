/** The bundler plugin that takes of three packages only the parts which the gateway uses. */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Plugin } from 'rolldown';

const require = createRequire(import.meta.url);

const VIRTUAL = '\0parts-of-';

/** The file of an installed package, wherever npm put it. */
function fileOf(name: string, file: string): string {
  return join(dirname(require.resolve(`${name}/package.json`)), file);
}

function from(path: string): string {
  return JSON.stringify(path);
}

/**
 * The main file loads a web client, mocks, caches and proxies: a fifth of a start. `request` and
 * its siblings are methods of every dispatcher, as the main file makes them.
 */
function undici(): string {
  const dispatcher = (name: string) => from(fileOf('undici', `lib/dispatcher/${name}.js`));
  return `import Dispatcher from ${dispatcher('dispatcher')};
import api from ${from(fileOf('undici', 'lib/api/index.js'))};
Object.assign(Dispatcher.prototype, api);
export { default as Agent } from ${dispatcher('agent')};
export { default as Client } from ${dispatcher('client')};
export { default as Pool } from ${dispatcher('pool')};
`;
}

const PARTS: Readonly<Record<string, () => string>> = {
  undici,
  // Every hash of the package is a program of its own, and Keccak is the one that is used.
  'hash-wasm': () =>
    `import keccak from ${from(fileOf('hash-wasm', 'dist/keccak.umd.min.js'))};
export const { createKeccak } = keccak;
`,
  // Express offers its parsers as `express.json` and so on. Bodies are read by src/json/strict.ts.
  'body-parser': () => 'export default {};\n',
};

/**
 * Replaces the main file of a package by its parts. A name that a source imports and that is not
 * among them stops the build.
 */
export function packageParts(): Plugin {
  return {
    name: 'package-parts',
    resolveId: {
      filter: { id: new RegExp(`^(?:${Object.keys(PARTS).join('|')})$`) },
      handler: (source) => VIRTUAL + source,
    },
    load: {
      filter: { id: new RegExp(`^${VIRTUAL}`) },
      handler(id) {
        const code = PARTS[id.slice(VIRTUAL.length)]?.();
        return code === undefined ? null : { code, moduleType: 'js' };
      },
    },
  };
}
