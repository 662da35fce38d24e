/** TEST keys of mandates for the local world. */

import { rm } from 'node:fs/promises';
import { parse } from 'yaml';
import { makeKeys } from '../../tools/mandate/test-keys.ts';
import type { ConfigObject } from './config.ts';

/**
 * Makes new TEST keys in a folder, as `acg mandate keys` does. @returns the section `authorization`
 * of a gateway that trusts them
 */
export async function trustTestKeys(folder: string): Promise<ConfigObject> {
  await rm(folder, { recursive: true, force: true });
  const { authorization } = parse(makeKeys(folder)) as ConfigObject;
  return authorization as ConfigObject;
}
