/** Bundler plugins that check what the bundle runs on: a new enough Node, and no other package. */

import { isBuiltin } from 'node:module';
import type { OutputBundle, Plugin } from 'rolldown';
import type { parseAst } from 'rolldown/parseAst';

/** `sysexits.h` EX_CONFIG: the machine is set up wrongly, and a restart does not help. */
export const WRONG_RUNTIME_EXIT_CODE = 78;

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

function guard([major, minor]: readonly [number, number]): string {
  return `{
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < ${major} || (major === ${major} && minor < ${minor})) {
    process.stderr.write('agent-commerce-gateway needs Node ${major}.${minor} or newer, this is ' + process.versions.node + '\\n');
    process.exit(${WRONG_RUNTIME_EXIT_CODE});
  }
}
`;
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

/** `import fs, { a as b } from 'fs'` as constants, so that the guard runs before linking. */
function asConstants(statement: ImportStatement, index: number): string {
  const builtin = `$builtin${index}`;
  const source = `const ${builtin} = process.getBuiltinModule(${JSON.stringify(statement.source.value)});`;
  return [source, ...statement.specifiers.map((binding) => asConstant(binding, builtin))].join(' ');
}

function builtinsAfterGuard(code: string, ast: Ast): string {
  let result = '';
  let end = 0;
  for (const [index, node] of ast.body.entries()) {
    if (node.type !== 'ImportDeclaration') continue;
    result += code.slice(end, node.start) + asConstants(node, index);
    end = node.end;
  }
  return result + code.slice(end);
}

/**
 * Makes the bundle refuse an old Node with one clear line and exit code 78. A check at the top of a
 * module is not enough: static imports are linked first, so Node 20 would die on `node:sqlite` with
 * a stack trace. Therefore the built-in modules are fetched by `process.getBuiltinModule`, after
 * the check.
 */
export function nodeGuard(least: readonly [major: number, minor: number]): Plugin {
  return {
    name: 'node-guard',
    renderChunk(code) {
      const hashbang = /^#!.*\n/.exec(code)?.[0] ?? '';
      const rest = code.slice(hashbang.length);
      return { code: hashbang + guard(least) + builtinsAfterGuard(rest, this.parse(rest)), map: null };
    },
  };
}

/** Fails the build when the result is not one file that needs nothing beside itself. */
export function selfContained(): Plugin {
  return {
    name: 'self-contained',
    generateBundle(_options, bundle: OutputBundle) {
      const files = Object.keys(bundle);
      if (files.length !== 1) this.error(`the build made ${files.length} files instead of one: ${files.join(', ')}`);
      for (const file of Object.values(bundle)) {
        const needed = file.type === 'chunk' ? file.imports.filter((name) => !isBuiltin(name)) : [];
        if (needed.length > 0) this.error(`${file.fileName} would need these packages beside it: ${needed.join(', ')}`);
      }
    },
  };
}
