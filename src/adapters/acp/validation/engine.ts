import { _, Ajv2020, type CodeOptions } from 'ajv/dist/2020.js';
import { FORMATS } from '../../../resources/patterns/formats.ts';
import { linearRegExp } from '../../../resources/patterns/linear-regexp.ts';
import { hasEqualItems } from './equal-items.ts';
import { relaxed } from './relaxations.ts';
import { SCHEMA_FILES } from './schemas.ts';
import type { Build } from './types.ts';

/** Documents come from callers: their texts are matched in linear time, within the budget of the document. */
const MATCHING = {
  regExp: Object.assign((pattern: string) => linearRegExp(pattern), {
    code: 'require("../../../resources/patterns/linear-regexp.ts").linearRegExp',
  }),
  formats: _`require("../../../resources/patterns/formats.ts").FORMATS`,
};

/** The schemas of one build, ready to be compiled by their references. `code`: whether as source text as well, for the bundle. */
export function createEngine(build: Build, code: CodeOptions = {}): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    // `anyOf` branches require what their parent declares.
    strictRequired: false,
    allowUnionTypes: true,
    discriminator: true,
    // A function for each definition, shared by all that refer to it: half of the code.
    inlineRefs: false,
    // fault.ts has the words.
    messages: false,
    code: { ...code, ...MATCHING },
  });
  for (const [name, test] of Object.entries(FORMATS)) ajv.addFormat(name, test);
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    code(cxt) {
      const test = { key: hasEqualItems, ref: hasEqualItems, code: _`require("./equal-items.ts").hasEqualItems` };
      if (cxt.schema === true) cxt.fail(_`${cxt.gen.scopeValue('func', test)}(${cxt.data})`);
    },
  });
  for (const [name, schema] of Object.entries(SCHEMA_FILES)) ajv.addSchema(relaxed(name, schema, build), name);
  return ajv;
}
