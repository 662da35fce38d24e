import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import schema from '../../schemas/config.schema.json' with { type: 'json' };

describe('the published schema of the configuration', () => {
  it('is JSON Schema 2020-12: the gateway takes it as it is', () => {
    const ajv = new Ajv2020();
    assert.ok(ajv.validateSchema(schema) === true, ajv.errorsText());
  });
});
