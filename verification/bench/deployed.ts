/** The gateway as the image has it: the bundle, the flags of Node and the variables. */

import { join } from 'node:path';
import { build } from 'rolldown';
import { compileBundle } from '../../deploy/bundle/compile.ts';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { instructions } from '../../spec/deploy/dockerfile.ts';

/** Builds the bundle into a folder, with what Node compiled of it. Resolves to its entry. */
export async function buildGateway(folder: string): Promise<string> {
  const entry = await bundleOf('src/main.ts', folder);
  await compileBundle(folder);
  return entry;
}

/** Bundles another entry in the same way. Resolves to its entry. */
export async function bundleOf(source: string, folder: string): Promise<string> {
  await build({ ...bundleOptions(source, folder), logLevel: 'silent' });
  return join(folder, BUNDLE_NAME);
}

/** The flags of Node and the variables that the image sets. */
export function deployed(): { readonly flags: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const all = instructions(join(import.meta.dirname, '../../deploy/Dockerfile'));
  const instruction = (name: string): string => all.findLast((one) => one.name === name)?.value ?? '';
  const [, ...command]: readonly string[] = JSON.parse(instruction('ENTRYPOINT'));
  const variables = instruction('ENV')
    .split(' ')
    .map((text) => text.split('=', 2));
  const env = variables.flatMap(([name = '', value = '']) => (name === 'PATH' ? [] : [[name, value] as const]));
  return { flags: command.slice(0, -1), env: Object.fromEntries(env) };
}
