/** The bundler plugin that takes of some packages only the parts which the gateway uses. */

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
export { default as buildConnector } from ${from(fileOf('undici', 'lib/core/connect.js'))};
`;
}

/** The main file loads an aggregator for node:cluster and a client of push gateways as well. */
function promClient(): string {
  const part = (name: string) => from(fileOf('@prometheus-io/client', `lib/${name}.js`));
  return `export { default as Registry } from ${part('registry')};
export { default as Counter } from ${part('counter')};
export { default as Gauge } from ${part('gauge')};
export { default as collectDefaultMetrics } from ${part('defaultMetrics')};
`;
}

const PARTS: Readonly<Record<string, () => string>> = {
  undici,
  '@prometheus-io/client': promClient,
  // Every hash of the package is a program of its own, and Keccak is the one that is used.
  'hash-wasm': () =>
    `import keccak from ${from(fileOf('hash-wasm', 'dist/keccak.umd.min.js'))};
export const { createKeccak } = keccak;
`,
  // Express offers its parsers as `express.json` and so on. Bodies are read by src/json/strict.ts.
  'body-parser': () => 'export default {};\n',
};

/** Where a connection of undici takes HTTP/2, which loads two megabytes of Node with it. */
const HTTP2_LOADER = /[\\/]undici[\\/]lib[\\/]dispatcher[\\/]client\.js$/;
const HTTP2_LOAD = "const connectH2 = require('./client-h2.js')";
const HTTP2_ON_DEMAND = "const connectH2 = (...args) => require('./client-h2.js')(...args)";

/**
 * Loads HTTP/2 when a peer has chosen it. A release of the package that loads it differently stops
 * the build.
 */
export function http2OnDemand(): Plugin {
  return {
    name: 'http2-on-demand',
    transform: {
      filter: { id: HTTP2_LOADER },
      handler(code, id) {
        if (!code.includes(HTTP2_LOAD)) this.error(`${id} no longer loads HTTP/2 as "${HTTP2_LOAD}"`);
        return { code: code.replace(HTTP2_LOAD, HTTP2_ON_DEMAND), map: null };
      },
    },
  };
}

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
