import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { createConfigEngine } from '../../src/config/compiled.ts';

const CONFIGURATIONS = globSync('deploy/**/*.{yaml,yml}').filter((file) =>
  /^merchant:/m.test(readFileSync(file, 'utf8')),
);
const MODELINE = /^# yaml-language-server: \$schema=(\S+)\n/;
/** What is replaced before the gateway looks: by its loader, or by the reader of the example. */
const REPLACED = /^\$\{|^REPLACE: /;

describe('the configurations below deploy', () => {
  it('are found', () => {
    assert.ok(CONFIGURATIONS.length >= 8, CONFIGURATIONS.join());
  });

  for (const file of CONFIGURATIONS)
    it(`${file} names a schema that editors find, and keeps to it`, () => {
      const text = readFileSync(file, 'utf8');
      const [, relative = assert.fail('its first line names no schema')] = MODELINE.exec(text) ?? [];
      const schema = path.join(path.dirname(file), relative);
      assert.ok(existsSync(schema), schema);
      const matches = createConfigEngine().compile(JSON.parse(readFileSync(schema, 'utf8')));
      matches(parse(text));
      const wrong = (matches.errors ?? []).filter(({ data }) => typeof data !== 'string' || !REPLACED.test(data));
      assert.deepEqual(wrong, []);
    });
});
