/** The bundles from which a run of all specs starts its processes. */

import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'rolldown';
import { BUNDLE_NAME, bundleOptions, checkoutOptions } from '../../deploy/bundle/options.ts';
import { COMPILE_CACHE } from './compile-cache.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, '.cache/bundle');
const PROGRAMS_FOLDER = join(ROOT, '.cache/programs');
/** What specs start often. `make run` starts the first of them. */
const PROGRAMS = ['src/main.ts', 'spec/support/run.ts', 'tools/acg.ts'] as const;

/** The code of a bundle in the folder of this file, all of its chunks. */
export function codeBeside(entry: string): string {
  const folder = dirname(entry);
  const files = globSync('**/*.mjs', { cwd: folder });
  return files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
}

/**
 * Builds the gateway as the image has it, below `.cache`. It starts in half the time that the
 * sources take, so a run of all specs, which starts some six hundred gateways, is a third shorter
 * with it.
 * @returns the file that is run
 */
export async function bundledGateway(): Promise<string> {
  await build({ ...bundleOptions('src/main.ts', FOLDER), logLevel: 'silent' });
  const entry = join(FOLDER, BUNDLE_NAME);
  // Gateways that are killed write down nothing of what they compiled; this one ends in order.
  await promisify(execFile)(process.execPath, [entry, '--help'], { env: COMPILE_CACHE });
  return entry;
}

/**
 * The bundle of the gateway that a run of all specs has built, or one that is built into a folder.
 * @returns the file that is run
 */
export async function gatewayBundle(folder: string): Promise<string> {
  const built = process.env['GATEWAY_ENTRY'];
  if (built !== undefined) return built;
  await build({ ...bundleOptions('src/main.ts', folder), logLevel: 'silent' });
  return join(folder, BUNDLE_NAME);
}

/**
 * Builds programs of the checkout below `.cache`. They start in half the time that their sources
 * take, too.
 * @returns the folder in which each has the path of its source
 */
export async function bundledPrograms(): Promise<string> {
  await build({ ...checkoutOptions(PROGRAMS, PROGRAMS_FOLDER), logLevel: 'silent' });
  return PROGRAMS_FOLDER;
}
