/** The pods of `fixtures/`, for every way of injection; those named `refused-…` are refused. */

import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';

const FOLDER = fileURLToPath(new URL('fixtures', import.meta.url));

interface PodFixture {
  readonly name: string;
  readonly file: string;
  readonly pod: Pod;
  readonly refused: boolean;
}

/** Every fixture, by name. */
export const POD_FIXTURES: readonly PodFixture[] = globSync('*.yaml', { cwd: FOLDER })
  .sort()
  .map((name) => {
    const file = path.join(FOLDER, name);
    return {
      name: path.basename(name, '.yaml'),
      file,
      pod: parse(readFileSync(file, 'utf8')) as Pod,
      refused: name.startsWith('refused-'),
    };
  });
