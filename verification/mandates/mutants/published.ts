/** The published AP2 vectors as a spec for the trials of mutants. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { vectors } from '../../../tools/vectors/ap2.ts';

/** In the process of the trial: `acg vectors` would start another one, without the mutant. */
const FILE = path.join(import.meta.dirname, '../../../../shared/vectors/ap2.json');

if (existsSync(FILE))
  it('finds nothing wrong in the published vectors', async () =>
    assert.equal(await vectors({ file: FILE, redis: undefined }), 0));
