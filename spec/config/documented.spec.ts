import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { USUALLY_INTERNAL } from '../../src/config/sections/backend.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';

const DOCUMENT = readFileSync('docs/configuration.md', 'utf8');
const { properties } = schema as unknown as { readonly properties: Readonly<Record<string, JsonObject>> };

interface Setting {
  readonly path: string;
  readonly schema: JsonObject;
}

/** The settings at and below a member that are no mapping of further settings. */
function settings(path: string, member: Json | undefined): readonly Setting[] {
  if (!isObject(member)) return [];
  if (!isObject(member['properties'])) return [{ path, schema: member }];
  return Object.entries(member['properties']).flatMap(([name, below]) => settings(`${path}.${name}`, below));
}

/** The cells of the row of a setting; `limits.maxInFlight` is a setting of ACP, too. */
function rowOf(path: string, below: string = ''): readonly string[] {
  const row = DOCUMENT.slice(DOCUMENT.indexOf(below))
    .split('\n')
    .find((line) => line.startsWith(`| \`${path}\``));
  return row?.split(' | ') ?? assert.fail(`docs/configuration.md has no row of ${path}`);
}

function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

describe('docs/configuration.md', () => {
  for (const section of ['merchant', 'server', 'backend', 'limits'])
    for (const setting of settings(section, properties[section]))
      it(`has a row of ${setting.path} with its default and bounds`, () => {
        const [, , last = ''] = rowOf(setting.path, `\n## ${section}`);
        const { default: usual, minimum, maximum } = setting.schema;
        // Ports are written as they are in URLs.
        const spellings = (value: number) => [grouped(value), String(value)];
        for (const value of [usual, minimum, maximum].filter((number) => typeof number === 'number'))
          assert.ok(
            spellings(value).some((text) => last.includes(text)),
            `${value} is not in: ${last}`,
          );
        if (typeof usual === 'boolean') assert.ok(last.includes(`\`${usual}\``), last);
      });

  it('has every way of exposing a resource', () => {
    const [, meaning = ''] = rowOf('expose');
    for (const channel of schema.$defs.resource.properties.expose.items.enum)
      assert.ok(meaning.includes(`\`${channel}\``));
  });

  it('has every setting of an operation of a resource', () => {
    for (const name of Object.keys(schema.$defs.resource.properties.backend.properties))
      rowOf(name === 'inputBindings' ? 'backend.inputBindings.path' : `backend.${name}`);
  });

  it('names every path that usually does not pass', () => {
    for (const path of USUALLY_INTERNAL) assert.ok(DOCUMENT.includes(`\`${path}\``), path);
  });
});
