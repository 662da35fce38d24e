/**
 * The engine that compiles JSON Schemas, with linear patterns and formats, a linear `uniqueItems`
 * and quick bounds of lengths; from it come the validators of inputs and, for the bundle, generated
 * code.
 */

import { _, Ajv2020, type CodeOptions, str } from 'ajv/dist/2020.js';
import { MIRROR_KEYWORD } from './keywords.ts';
import { BOUNDED_FORMATS, boundedRegExp, hasEqualItems, isLongerThan, isShorterThan } from './matching.ts';

const MATCHING = {
  regExp: Object.assign((pattern: string) => boundedRegExp(pattern), {
    code: 'require("./matching.ts").boundedRegExp',
  }),
  formats: _`require("./matching.ts").BOUNDED_FORMATS`,
};

interface EngineOptions {
  readonly allErrors: boolean;
  /** Whether it knows the meta-schema, which takes longer to compile than most schemas. */
  readonly meta?: boolean;
  /** Options of the generated code, such as its source text for the bundle. */
  readonly code?: CodeOptions;
}

/** Creates an engine, which does not compare schemas with the meta-schema. */
export function createEngine({ allErrors, meta = false, code = {} }: EngineOptions): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    validateSchema: false,
    meta,
    // `closeSchema` adds keywords beside which no type is declared; `schemaFaults` checks types.
    strictTypes: false,
    strictRequired: false,
    // A tuple may be shorter, or longer.
    strictTuples: false,
    ownProperties: true,
    unicodeRegExp: false,
    validateFormats: true,
    addUsedSchema: false,
    allErrors,
    code: { ...code, ...MATCHING },
  });
  for (const [name, test] of Object.entries(BOUNDED_FORMATS)) ajv.addFormat(name, test);
  // The mirror keyword concerns headers, `$anchor` is a name: neither asserts anything of a value.
  for (const keyword of [MIRROR_KEYWORD, '$anchor']) ajv.addKeyword({ keyword, schemaType: 'string' });
  // The original compares every pair, and 130,000 small objects fit into one body.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not have equal items' },
    code(cxt) {
      const test = { key: hasEqualItems, ref: hasEqualItems, code: _`require("./matching.ts").hasEqualItems` };
      if (cxt.schema === true) cxt.fail(_`${cxt.gen.scopeValue('func', test)}(${cxt.data})`);
    },
  });
  // The originals count the characters of every text, one by one.
  const bounds = [
    ['maxLength', isLongerThan, _`require("./matching.ts").isLongerThan`, 'more'],
    ['minLength', isShorterThan, _`require("./matching.ts").isShorterThan`, 'fewer'],
  ] as const;
  for (const [keyword, test, code, than] of bounds) {
    ajv.removeKeyword(keyword);
    ajv.addKeyword({
      keyword,
      type: 'string',
      schemaType: 'number',
      error: {
        message: ({ schemaCode }) => str`must NOT have ${than} than ${schemaCode} characters`,
        params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
      },
      code(cxt) {
        const named = cxt.gen.scopeValue('func', { key: test, ref: test, code });
        cxt.fail(_`${named}(${cxt.data}, ${cxt.schemaCode})`);
      },
    });
  }
  return ajv;
}
