import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { schemaAt } from '../../src/config/document/member.ts';

const CONDITIONS: ReadonlySet<string> = new Set(['if', 'then', 'else', 'oneOf', 'anyOf', 'allOf', 'not']);

describe('the published schema of the configuration', () => {
  it('is JSON Schema 2020-12: the gateway takes it as it is', () => {
    const ajv = new Ajv2020();
    assert.ok(ajv.validateSchema(schema) === true, ajv.errorsText());
  });

  it('declares no type of a member in a condition: what a member is does not depend on others', () => {
    const conditional = (node: unknown, inside: boolean, path: string): readonly string[] => {
      if (node === null || typeof node !== 'object') return [];
      const typed = inside && 'type' in node && typeof node.type === 'string' ? [path] : [];
      const below = Object.entries(node).flatMap(([name, inner]) =>
        conditional(inner, inside || CONDITIONS.has(name), `${path}/${name}`),
      );
      return [...typed, ...below];
    };
    assert.deepEqual(conditional(schema, false, ''), []);
  });
});

describe('what the schema says of a member', () => {
  it('is found through sections, lists, names and references', () => {
    assert.equal(schemaAt(['server', 'port'])?.type, 'integer');
    assert.equal(schemaAt(['storage', 'sealing', 'keys', 0, 'id'])?.type, 'string');
    assert.equal(schemaAt(['resources', 'any', 'backend', 'timeoutMs'])?.maximum, 120_000);
    assert.equal(schemaAt(['payments', 'x402', 'facilitator', 'url'])?.description, 'the URL of the facilitator');
  });

  it('is nothing for a key that is not known, and no type where an operator writes what he likes', () => {
    assert.equal(schemaAt(['server', 'prot']), undefined);
    assert.equal(schemaAt(['server', 0]), undefined);
    assert.equal(schemaAt(['server', 'toString']), undefined);
    assert.deepEqual(schemaAt(['resources', 'any', 'inputSchema', 'properties', 'city']), {});
  });
});
