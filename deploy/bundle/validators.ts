/** The bundler plugin that replaces the compiling of JSON Schemas at run time by generated code. */

import standaloneCode from 'ajv/dist/standalone/index.js';
import type { Plugin } from 'rolldown';
import { createEngine, referenceTo } from '../../src/adapters/acp/validation/engine.ts';
import { BUILDS, type Build, DOCUMENT_NAMES, REQUEST_NAMES } from '../../src/adapters/acp/validation/validator.ts';
import { createConfigEngine } from '../../src/config/compiled.ts';
import { createEngine as createSchemaEngine } from '../../src/resources/schemas/engine.ts';
import { DIALECT } from '../../src/resources/schemas/keywords.ts';
import { leanConfigSchema } from './lean-schema.ts';

/** The modules that compile schemas. */
const COMPILED = /[\\/]src[\\/](?:adapters[\\/]acp[\\/]validation|resources[\\/]schemas|config)[\\/]compiled\.ts$/;
/** A module of its own for each build of validators, because their generated names are the same. */
const GENERATED = /[\\/]generated-([a-z-]+)\.js$/;

// The package is CommonJS: the function is the export itself, or its `default`.
const standalone = standaloneCode.default ?? standaloneCode;

/** Only requests differ from build to build. */
function namesOf(build: Build) {
  return build === 'strict' ? DOCUMENT_NAMES : REQUEST_NAMES;
}

function codeOf(build: Build): string {
  const engine = createEngine(build, { source: true });
  return standalone(engine, Object.fromEntries(namesOf(build).map((name) => [name, referenceTo(name)])));
}

function configCode(): string {
  const engine = createConfigEngine({ source: true });
  return standalone(engine, engine.compile(leanConfigSchema()));
}

function metaSchemaCode(): string {
  const engine = createSchemaEngine({ allErrors: false, meta: true, code: { source: true } });
  return standalone(engine, engine.getSchema(DIALECT));
}

function tableOfAll(): string {
  const imports = BUILDS.map((build, index) => `import build${index} from './generated-${build}.js';`);
  const entries = BUILDS.map((build, index) => `${JSON.stringify(build)}: build${index}`);
  return `${imports.join('\n')}
const builds = { ${entries.join(', ')} };
export function compiledOf(build, name) {
  const compiled = builds[build][name];
  if (compiled === undefined) throw new Error('there is no schema of ' + name + ' in the build ' + build);
  return compiled;
}
`;
}

const META_SCHEMA_MODULE = `import matchesMetaSchema from './generated-meta-schema.js';
export { matchesMetaSchema };
`;

const CONFIG_MODULE = `import matchesSchema from './generated-config.js';
export { matchesSchema };
`;

function moduleFor(id: string): string {
  if (/[\\/]config[\\/]/.test(id)) return CONFIG_MODULE;
  return /[\\/]resources[\\/]/.test(id) ? META_SCHEMA_MODULE : tableOfAll();
}

/**
 * Puts the code of the validators where the gateway would otherwise compile their schemas: those
 * of ACP at its first call, that of the configuration and the meta-schema of inputs at its start.
 * The code comes from the engines that run from source, and the specs of spec/deploy hold both
 * against the same documents.
 */
export function standaloneValidators(): Plugin {
  return {
    name: 'standalone-validators',
    resolveId: {
      filter: { id: /^\.\/generated-[a-z-]+\.js$/ },
      handler: (source, importer) =>
        importer !== undefined && COMPILED.test(importer) ? importer.replace('compiled.ts', source.slice(2)) : null,
    },
    load: {
      filter: { id: [COMPILED, GENERATED] },
      handler(id) {
        if (COMPILED.test(id)) return { code: moduleFor(id), moduleType: 'js' };
        const name = GENERATED.exec(id)?.[1];
        if (name === 'meta-schema') return { code: metaSchemaCode(), moduleType: 'js' };
        if (name === 'config') return { code: configCode(), moduleType: 'js' };
        const build = BUILDS.find((one) => one === name);
        return build === undefined ? null : { code: codeOf(build), moduleType: 'js' };
      },
    },
  };
}
