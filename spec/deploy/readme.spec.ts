import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

const DEPLOY = join(import.meta.dirname, '../../deploy');

describe('the README of the deployment', () => {
  it('names only files that exist', () => {
    const paths = [
      ...readFileSync(join(DEPLOY, 'README.md'), 'utf8').matchAll(
        /`((?:base|components|overlays|monitoring|compose|bundle|admission)\/[\w./-]*)`/g,
      ),
    ];
    assert.ok(paths.length > 8);
    for (const [, path = ''] of paths) assert.ok(existsSync(join(DEPLOY, path)), path);
  });
});
