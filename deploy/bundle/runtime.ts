/**
 * Bundler plugins for what the bundle runs on: a new enough Node, its built-in modules, what that
 * Node compiled before, and no other package.
 */

import { isBuiltin } from 'node:module';
import type { OutputBundle, Plugin } from 'rolldown';
import type { parseAst } from 'rolldown/parseAst';

/** `sysexits.h` EX_CONFIG: the machine is set up wrongly, and a restart does not help. */
export const WRONG_RUNTIME_EXIT_CODE = 78;

/** The folder of what Node compiled, beside the file that is run. */
export const COMPILED_FOLDER = 'compiled';

type Ast = ReturnType<typeof parseAst>;
type ImportStatement = Extract<Ast['body'][number], { type: 'ImportDeclaration' }>;
type Binding = ImportStatement['specifiers'][number];

/** Not in the image; loaded when an operator adds them. Callers catch their absence. */
export const OPTIONAL_PACKAGES = /^(secp256k1(\/.*)?|bufferutil|utf-8-validate)$/;

/** Reads `>=24.15` of package.json `engines.node` as [24, 15]. */
export function leastNode(range: string): readonly [major: number, minor: number] {
  const match = /^>=(\d+)\.(\d+)$/.exec(range);
  if (match === null) throw new Error(`engines.node "${range}" is not of the form >=major.minor`);
  return [Number(match[1]), Number(match[2])];
}

function asConstant(binding: Binding, builtin: string): string {
  const local = binding.local.name;
  if (binding.type === 'ImportDefaultSpecifier') return `const ${local} = ${builtin};`;
  if (binding.type === 'ImportNamespaceSpecifier') {
    return `const ${local} = Object.create(${builtin}, { default: { value: ${builtin} } });`;
  }
  const imported = binding.imported.type === 'Identifier' ? binding.imported.name : binding.imported.value;
  return imported === 'default' ? `const ${local} = ${builtin};` : `const { ${imported}: ${local} } = ${builtin};`;
}

/** `import fs, { a as b } from 'fs'` as constants. */
function asConstants(statement: ImportStatement, index: number): string {
  const builtin = `$builtin${index}`;
  const source = `const ${builtin} = process.getBuiltinModule(${JSON.stringify(statement.source.value)});`;
  return [source, ...statement.specifiers.map((binding) => asConstant(binding, builtin))].join(' ');
}

function builtinsAsConstants(code: string, ast: Ast): string {
  let result = '';
  let end = 0;
  for (const [index, node] of ast.body.entries()) {
    if (node.type !== 'ImportDeclaration' || !isBuiltin(node.source.value)) continue;
    result += code.slice(end, node.start) + asConstants(node, index);
    end = node.end;
  }
  return result + code.slice(end);
}

/**
 * Takes built-in modules from `process.getBuiltinModule`. An import statement makes Node read every
 * export of such a module, and reading all of `http` loads its whole web client, which costs a
 * start 60 ms.
 */
export function builtinModules(): Plugin {
  return {
    name: 'builtin-modules',
    renderChunk(code) {
      return { code: builtinsAsConstants(code, this.parse(code)), map: null };
    },
  };
}

function launcher([major, minor]: readonly [number, number], program: string): string {
  return `#!/usr/bin/env node
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < ${major} || (major === ${major} && minor < ${minor})) {
  process.stderr.write('agent-commerce-gateway needs Node ${major}.${minor} or newer, this is ' + process.versions.node + '; npm install -g node@26 brings one\\n');
  process.exit(${WRONG_RUNTIME_EXIT_CODE});
}
// What this Node on this kind of processor made of all chunks in the build: nothing is written.
const [fs, nodeModule, url, v8] = ['fs', 'module', 'url', 'v8'].map((name) => process.getBuiltinModule('node:' + name));
const directory = url.fileURLToPath(new URL('./${COMPILED_FOLDER}', import.meta.url));
const tag = [process.version, process.arch, v8.cachedDataVersionTag().toString(16)].join('-');
if (fs.existsSync(directory + '/' + tag)) nodeModule.enableCompileCache({ directory, portable: true });
await import('./${program}');
`;
}

/**
 * Writes the file that runs an entry. It refuses an old Node with one clear line and exit code 78
 * before anything else is linked: static imports would be, and Node 20 would die on `node:sqlite`
 * with a stack trace.
 */
export function launch(name: string, entry: string, least: readonly [major: number, minor: number]): Plugin {
  return {
    name: 'launch',
    generateBundle(_options, bundle: OutputBundle) {
      const program = entryNamed(entry, bundle) ?? this.error(`the build made no ${entry}`);
      this.emitFile({ type: 'asset', fileName: name, source: launcher(least, program) });
    },
  };
}

/** Writes a file that exports what an entry does, under a name that stays. */
export function reexport(name: string, entry: string): Plugin {
  return {
    name: 'reexport',
    generateBundle(_options, bundle: OutputBundle) {
      const module = entryNamed(entry, bundle) ?? this.error(`the build made no ${entry}`);
      this.emitFile({ type: 'asset', fileName: name, source: `export * from './${module}';\n` });
    },
  };
}

/** The file of an entry of the bundle. */
function entryNamed(entry: string, bundle: OutputBundle): string | undefined {
  return Object.values(bundle).find((file) => file.type === 'chunk' && file.isEntry && file.name === entry)?.fileName;
}

/** Fails the build when a chunk needs anything that is neither built in nor another chunk. */
export function selfContained(): Plugin {
  return {
    name: 'self-contained',
    generateBundle(_options, bundle: OutputBundle) {
      for (const file of Object.values(bundle)) {
        const imported = file.type === 'chunk' ? [...file.imports, ...file.dynamicImports] : [];
        const needed = imported.filter((name) => !isBuiltin(name) && bundle[name] === undefined);
        if (needed.length > 0) this.error(`${file.fileName} would need these packages beside it: ${needed.join(', ')}`);
      }
    },
  };
}
