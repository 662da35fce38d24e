import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';
import { nativePackages } from '../../deploy/bundle/native.ts';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { leastNode, WRONG_RUNTIME_EXIT_CODE } from '../../deploy/bundle/runtime.ts';
import { SBOM_NAME } from '../../deploy/bundle/sbom.ts';
import { codeBeside, gatewayBundle } from '../support/bundle.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FIXTURE = join(ROOT, 'spec/deploy/fixtures/entry');
const RUN_TIMEOUT_MS = 20_000;

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(bundle: string, nodeFlags: readonly string[] = [], args: readonly string[] = []): Run {
  const child = spawnSync(process.execPath, [...nodeFlags, bundle, ...args], {
    cwd: join(bundle, '..'),
    env: {},
    encoding: 'utf8',
    timeout: RUN_TIMEOUT_MS,
  });
  return { code: child.status, out: child.stdout, err: child.stderr };
}

/** Flags that make Node report another version. */
function pretending(version: string): readonly string[] {
  const script = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  return ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
}

describe('the bundle', () => {
  const work = mkdtempSync(join(tmpdir(), 'bundle-'));
  const alone = join(work, 'alone');
  const bundle = join(alone, BUNDLE_NAME);

  before(async () => {
    await build({ ...bundleOptions(join(FIXTURE, 'entry.ts'), join(work, 'dist')), logLevel: 'silent' });
    cpSync(join(work, 'dist'), alone, { recursive: true });
  });
  after(() => rmSync(work, { recursive: true, force: true }));

  it('is one file beside its chunks, each with its map', () => {
    assert.deepEqual(readdirSync(alone).sort(), ['chunks', BUNDLE_NAME, 'node_modules', SBOM_NAME]);
    for (const chunk of readdirSync(join(alone, 'chunks')).filter((name) => name.endsWith('.mjs')))
      assert.ok(existsSync(join(alone, 'chunks', `${chunk}.map`)), chunk);
  });

  it('names the line of its source where a map is asked for', () => {
    const { err } = run(bundle, ['--enable-source-maps'], ['fail']);
    const line = readFileSync(join(FIXTURE, 'entry.ts'), 'utf8')
      .split('\n')
      .findIndex((text) => text.includes("'asked to fail'"));
    assert.match(err, new RegExp(`fixtures/entry/entry\\.ts:${line + 1}:`));
  });

  it('runs without its native library, and without anything beside it', () => {
    const copy = join(work, 'portable');
    cpSync(alone, copy, { recursive: true, filter: (path) => !path.includes('node_modules') });
    const { code, out } = run(join(copy, BUNDLE_NAME));
    assert.equal(code, 0);
    assert.equal(JSON.parse(out).native, 'absent');
  });

  it('runs from an empty directory with everything the gateway needs inside', () => {
    const { code, out, err } = run(bundle);
    assert.equal(err, '');
    assert.equal(code, 0);
    const manifest: { readonly version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    assert.deepEqual(JSON.parse(out), {
      version: manifest.version,
      lua: readFileSync(join(FIXTURE, 'answer.lua'), 'utf8'),
      script: readFileSync(join(FIXTURE, 'page.js'), 'utf8'),
      accepts: true,
      refuses: true,
      yaml: { a: [1] },
      hash: '0x314c1dfbbccab41a44cf9fefc21e632eb8e01bc0346d4414114d4c3dd0e9fdf1',
      verifies: true,
      sqlite: 1,
      // No compiler and no install script: only where the package has it for this platform.
      native: nativePackages().size > 0 ? 'present' : 'absent',
      lazy: '0x4a62316623ad457F02cDC5D997deD67a383EC569',
    });
  });

  it('links no module before the check of the Node version', () => {
    assert.doesNotMatch(readFileSync(bundle, 'utf8'), /^import\b/m);
  });

  it('imports no built-in module, which would make Node read all of its exports', () => {
    for (const chunk of readdirSync(join(alone, 'chunks')).filter((name) => name.endsWith('.mjs'))) {
      const code = readFileSync(join(alone, 'chunks', chunk), 'utf8');
      for (const [, source = ''] of code.matchAll(/(?:^|;)(?:import|export)\b[^;"'()]*?from ?"([^"]+)"/gm))
        assert.match(source, /^\.\//, chunk);
    }
  });

  for (const { version, runs } of [
    { version: '20.20.2', runs: false },
    { version: '22.23.3', runs: false },
    { version: '24.14.99', runs: false },
    { version: '24.15.0', runs: true },
    { version: '25.0.0', runs: true },
    { version: '26.10.0', runs: true },
  ]) {
    it(`${runs ? 'runs' : 'refuses to run'} on Node ${version}`, () => {
      const { code, err, out } = run(bundle, pretending(version));
      assert.equal(code, runs ? 0 : WRONG_RUNTIME_EXIT_CODE);
      assert.equal(out === '', !runs);
      if (!runs)
        assert.equal(
          err,
          `agent-commerce-gateway needs Node 24.15 or newer, this is ${version}; npm install -g node@26 brings one\n`,
        );
    });
  }

  for (const { rule, source } of [
    {
      rule: 'a text file whose name is known only at run time',
      source: 'readFileSync(new URL("./" + process.argv[2], import.meta.url), "utf8")',
    },
    { rule: 'a file that is read as bytes', source: 'readFileSync(new URL("./answer.lua", import.meta.url))' },
    {
      rule: 'a file of a kind that is not text',
      source: 'readFileSync(new URL("./answer.bin", import.meta.url), "utf8")',
    },
  ]) {
    it(`is not built when a module reads ${rule}`, async () => {
      const entry = join(work, 'stray.ts');
      writeFileSync(entry, `import { readFileSync } from 'node:fs';\nconsole.log(${source});\n`);
      await assert.rejects(
        build({ ...bundleOptions(entry, join(work, 'stray')), logLevel: 'silent' }),
        /cannot be bundled|the bundle inlines/,
      );
    });
  }

  it('is not built when it would need a package beside it', async () => {
    const entry = join(work, 'beside.ts');
    writeFileSync(entry, "import secp256k1 from 'secp256k1';\nconsole.log(secp256k1);\n");
    await assert.rejects(
      build({ ...bundleOptions(entry, join(work, 'beside')), logLevel: 'silent' }),
      /beside it: secp256k1/,
    );
  });
});

describe('the supported Node version', () => {
  it('is read from package.json engines', () => assert.deepEqual(leastNode('>=24.15'), [24, 15]));

  for (const range of ['24', '^24.15', '>=24', '>=24.15.1 <27', '']) {
    it(`is refused when written "${range}"`, () => assert.throws(() => leastNode(range), /engines\.node/));
  }
});

/** Everything that may hold a letter: names, text, templates, patterns, kept comments. */
const LETTERS = `
/*! Licence of Jörg Größe … 🎉 */
/** The names in {…}. */
function größe(text: string): unknown {
  const ünit = 'Zürich … 🎉';
  const wide = /^[ä-ü…]+$/;
  return [ünit, \`\${text} – 🎉\`, wide.test('äü…'), wide.test('a'), /^.🎉$/u.test('x🎉'), { ñ: 1 }];
}
process.stdout.write(JSON.stringify(größe('“q”')));
`;

describe('the text of the bundle', () => {
  const work = mkdtempSync(join(tmpdir(), 'ascii-'));
  after(() => rmSync(work, { recursive: true, force: true }));

  const built = async (name: string, source: string) => {
    const entry = join(work, `${name}.ts`);
    writeFileSync(entry, source);
    const warnings: string[] = [];
    const dir = join(work, name);
    await build({ ...bundleOptions(entry, dir), onLog: (_level, { message }) => warnings.push(message) });
    const path = join(dir, BUNDLE_NAME);
    return { path, text: codeBeside(path), warnings };
  };

  it('is ASCII, does what its source does, and keeps its licences', async () => {
    const { path, text, warnings } = await built('letters', LETTERS);
    assert.doesNotMatch(text, /[^\0-\x7f]/);
    assert.deepEqual(warnings, []);
    assert.match(text, /Licence of J\\u00f6rg/);
    const { stdout, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8' });
    assert.deepEqual([stderr, JSON.parse(stdout)], ['', ['Zürich … 🎉', '“q” – 🎉', true, false, true, { ñ: 1 }]]);
  });

  it('of the gateway itself is ASCII', async () => {
    assert.doesNotMatch(codeBeside(await gatewayBundle(join(work, 'gateway'))), /[^\0-\x7f]/);
  });

  it('keeps the letters of raw templates, and the build warns of them', async () => {
    const { path, warnings } = await built('raw', 'process.stdout.write(String.raw`–`);\n');
    assert.equal(spawnSync(process.execPath, [path], { encoding: 'utf8' }).stdout, '–');
    assert.match(warnings.join('\n'), /holds 1 characters beyond ASCII/);
  });
});
