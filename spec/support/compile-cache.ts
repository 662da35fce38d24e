/** The compile cache that gateways of specs share. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
/** What gateways of the tests load, and no process that ends in order loads. */
const SOURCES = ['src/cli/serve.ts', 'verification/chaos/steps/halt.ts'].map(
  (file) => pathToFileURL(join(ROOT, file)).href,
);

/**
 * The environment of Node processes that share what one of them has compiled: a test run starts
 * hundreds, and compiling is two thirds of what a start costs. Only a process that ends in order
 * writes down what it compiled.
 */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(ROOT, 'node_modules/.cache/compiled'),
} as const;

/** Compiles the sources of a gateway before the first of those that are killed. */
export async function compileSources(): Promise<void> {
  const load = `await Promise.all(${JSON.stringify(SOURCES)}.map((source) => import(source))); process.exit();`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', load], { env: COMPILE_CACHE });
}
