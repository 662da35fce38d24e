/**
 * The pods of `fixtures/`, for every way of injection; those named `refused-…` are refused. Their
 * comments `# Said:` have what their authors are told.
 */

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
  readonly said: readonly string[];
}

/** Every fixture, by name. */
export const POD_FIXTURES: readonly PodFixture[] = globSync('*.yaml', { cwd: FOLDER })
  .sort()
  .map((name) => {
    const file = path.join(FOLDER, name);
    const text = readFileSync(file, 'utf8');
    return {
      name: path.basename(name, '.yaml'),
      file,
      pod: parse(text) as Pod,
      refused: name.startsWith('refused-'),
      said: [...text.matchAll(/^# Said: (.*)$/gm)].map(([, line = '']) => line),
    };
  });
