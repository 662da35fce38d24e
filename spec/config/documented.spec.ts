import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { createConfigEngine } from '../../src/config/compiled.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { USUALLY_INTERNAL } from '../../src/passthrough/settings.ts';
import { DOCUMENT, keysOf, TYPES, tablesIn, withTables } from '../../tools/docs/configuration.ts';
import { documentTypes } from '../../tools/docs/document-types.ts';

const TEXT = readFileSync(DOCUMENT, 'utf8');
const SECTIONS = tablesIn(TEXT).flatMap((sections) => sections.split(', '));
/** A constant, and a mapping whose members are a definition with a table of its own. */
const WITHOUT_TABLE = ['version', 'resources'];
const NUMBERS = ['default', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems'];

/** The paths of members that have no members of their own. */
function leaves(path: string, member: Json | undefined): readonly string[] {
  if (!isObject(member) || !isObject(member['properties'])) return [path];
  return Object.entries(member['properties']).flatMap(([name, below]) => leaves(`${path}.${name}`, below));
}

/** How often a member occurs in a document. */
function count(name: string, value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return Object.entries(value).reduce(
    (total, [member, below]) => total + (member === name ? 1 : count(name, below)),
    0,
  );
}

describe('the types of the document', () => {
  it('are those that the schema gives (make format writes them)', () =>
    assert.equal(documentTypes(), readFileSync(TYPES, 'utf8')));
});

describe('docs/configuration.md', () => {
  it('has the tables that the schema gives (make format writes them)', () => {
    assert.equal(withTables(TEXT), TEXT);
  });

  it('has a row of every key that the schema explains, once', () => {
    const rows = tablesIn(TEXT).flatMap(keysOf);
    assert.equal(rows.length, count('markdownDescription', schema));
  });

  it('has every key of the schema in a table', () => {
    const lost = Object.entries(schema.properties as unknown as JsonObject)
      .filter(([name]) => !WITHOUT_TABLE.includes(name))
      .flatMap(([name, member]) => leaves(name, member))
      .filter((leaf) => !SECTIONS.some((section) => leaf === section || leaf.startsWith(`${section}.`)));
    assert.deepEqual(lost, []);
  });

  for (const { name, node, meaning, bounds } of tablesIn(TEXT).flatMap(keysOf))
    it(`tells the numbers and the words of ${name}`, () => {
      const numbers = Object.entries(node).filter(([member, value]) => NUMBERS.includes(member) && value > 1);
      for (const [member, value] of numbers) {
        const spellings = [String(value), Number(value).toLocaleString('en-US')];
        assert.ok(
          spellings.some((text) => bounds.includes(text)),
          `${member} ${value} is not in: ${bounds}`,
        );
      }
      const { enum: words = [] } = { ...node.items, ...node } as { readonly enum?: readonly string[] };
      for (const word of words)
        assert.ok(`${meaning} ${bounds}`.includes(words.length === 1 ? word : `\`${word}\``), `${word} is not told`);
    });

  it('names every path that usually does not pass', () => {
    for (const path of USUALLY_INTERNAL) assert.ok(TEXT.includes(`\`${path}\``), path);
  });
});

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
