/** Builds a bundle of validators and asks it about documents. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { build } from 'rolldown';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { codeBeside } from '../support/bundle.ts';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Bundles a program of fixtures/validators. Its specs also check that it carries no compiler. */
export function bundledValidators(program: 'entry' | 'config' | 'meta-schema') {
  const work = mkdtempSync(join(tmpdir(), 'validators-'));
  const bundle = join(work, BUNDLE_NAME);
  const entry = join(import.meta.dirname, `fixtures/validators/${program}.ts`);
  before(() => build({ ...bundleOptions(entry, work), logLevel: 'silent' }));
  after(() => rmSync(work, { recursive: true, force: true }));
  const code = (): string => codeBeside(bundle);
  it('carries no compiler', () => assert.doesNotMatch(code(), /ajv\/dist\/(core|2020|compile)/));
  return {
    code,
    /** What it answers to these documents, with code generation switched off. */
    verdicts(documents: readonly unknown[]): unknown {
      const file = join(work, 'documents.json');
      writeFileSync(file, JSON.stringify(documents));
      const args = ['--disallow-code-generation-from-strings', bundle, file];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES });
      assert.equal(stderr, '');
      return JSON.parse(stdout);
    },
  };
}
