import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BUNDLE_NAME } from '../../deploy/bundle/options.ts';
import { COMPILED_FOLDER } from '../../deploy/bundle/runtime.ts';
import { SBOM_NAME } from '../../deploy/bundle/sbom.ts';
import { type Instruction, inContext, instructions, stages } from './dockerfile.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IGNORE = readFileSync(join(ROOT, '.dockerignore'), 'utf8');
const BUILD_TIMEOUT_MS = 60_000;

const all = instructions(join(ROOT, 'deploy/Dockerfile'));
const [build = [], image = [], ...more] = stages(all);

function values(stage: readonly Instruction[], name: string): readonly string[] {
  return stage.filter((instruction) => instruction.name === name).map(({ value }) => value);
}

/** The exec form of an instruction, or undefined for the shell form. */
function execForm(stage: readonly Instruction[], name: string): readonly string[] | undefined {
  const [value = ''] = values(stage, name);
  const json = value.slice(value.indexOf('['));
  return json.startsWith('[') ? JSON.parse(json) : undefined;
}

/** The sources of the COPYs of the build stage, which come from the build context. */
const sources = values(build, 'COPY').flatMap((value) => value.split(' ').slice(0, -1));

describe('the image', () => {
  const rules: readonly { readonly rule: string; readonly of: () => unknown; readonly is: unknown }[] = [
    { rule: 'is built in two stages', of: () => more, is: [] },
    {
      rule: 'has no base by default: the caller pins both',
      of: () => values(all, 'ARG'),
      is: ['NODE_IMAGE', 'RUNTIME_IMAGE'],
    },
    {
      rule: 'builds on what the caller pinned and nothing else',
      of: () => values(all, 'FROM').map((value) => /^\$\{(\w+)\}( AS build)?$/.exec(value)?.[1]),
      is: ['NODE_IMAGE', 'RUNTIME_IMAGE'],
    },
    {
      rule: 'contains the bundle, which belongs to root',
      of: () => values(image, 'COPY'),
      is: ['--from=build --chown=0:0 /src/dist ./'],
    },
    { rule: 'adds nothing from the network', of: () => values(all, 'ADD'), is: [] },
    { rule: 'runs no command in its final stage', of: () => values(image, 'RUN'), is: [] },
    { rule: 'runs as an unprivileged user', of: () => values(image, 'USER'), is: ['65532:65532'] },
    { rule: 'names its two ports', of: () => values(image, 'EXPOSE'), is: ['8402 8403'] },
    { rule: 'is stopped by the signal that drains', of: () => values(image, 'STOPSIGNAL'), is: ['SIGTERM'] },
    { rule: 'serves by default', of: () => execForm(image, 'CMD'), is: ['serve'] },
    {
      rule: 'starts the process itself, so that signals reach it without a shell',
      of: () => execForm(image, 'ENTRYPOINT'),
      is: [
        'node',
        '--disable-proto=delete',
        '--max-old-space-size-percentage=60',
        '--max-semi-space-size=8',
        `/app/${BUNDLE_NAME}`,
      ],
    },
    {
      rule: 'checks its health with its own file',
      of: () => execForm(image, 'HEALTHCHECK'),
      is: ['node', `/app/${BUNDLE_NAME}`, 'healthcheck'],
    },
  ];
  for (const { rule, of, is } of rules) it(rule, () => assert.deepEqual(of(), is));

  it('installs from the lock and runs no install script', () => {
    const [install = ''] = values(build, 'RUN');
    assert.match(install, /npm ci --ignore-scripts\b/);
  });

  it('is bundled by the Node of its base: the one of the lockfile need not run there', () => {
    const [install = '', bundle = '', compile = ''] = values(build, 'RUN');
    assert.match(install, / --engine-strict /);
    assert.deepEqual(JSON.parse(bundle).slice(0, 2), ['node', 'node_modules/rolldown/bin/cli.mjs']);
    assert.deepEqual(JSON.parse(compile), ['node', 'deploy/bundle/compile.ts', 'dist']);
  });

  it('carries no secret', () => {
    for (const { name, value } of all) {
      if (['ENV', 'ARG', 'LABEL'].includes(name)) assert.doesNotMatch(value, /token|secret|password|key/i);
    }
    assert.match(values(build, 'RUN')[0] ?? '', /--mount=type=secret,id=npmrc/);
  });
});

describe('the build context', () => {
  for (const { path, sent } of [
    ...sources.map((source) => ({ path: source.replace(/^\.\//, ''), sent: true })),
    { path: 'deploy/bundle/options.ts', sent: true },
    { path: 'src/main.ts', sent: true },
    { path: '.git/config', sent: false },
    { path: '.npmrc', sent: false },
    { path: 'node_modules/express/package.json', sent: false },
    { path: 'deploy/overlays/dev/secrets/gateway/ADMIN_TOKEN', sent: false },
    { path: 'config.yaml', sent: false },
    { path: 'data/gateway.db', sent: false },
    { path: 'spec/deploy/dockerfile.ts', sent: false },
  ]) {
    it(`${sent ? 'has' : 'leaves out'} ${path}`, () => assert.equal(inContext(IGNORE, path), sent));
  }
});

describe('the gateway, built from what the image build copies', () => {
  const work = mkdtempSync(join(tmpdir(), 'context-'));
  after(() => rmSync(work, { recursive: true, force: true }));

  it('becomes a folder that runs from anywhere and that its user cannot change', () => {
    for (const source of sources) {
      mkdirSync(dirname(join(work, source)), { recursive: true });
      cpSync(join(ROOT, source), join(work, source), { recursive: true });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(work, 'node_modules'));
    const [, ...commands] = build.filter(({ name }) => name === 'RUN');
    for (const command of commands) {
      const [program = '', ...args]: readonly string[] = JSON.parse(command.value);
      const built = spawnSync(program, args, { cwd: work, encoding: 'utf8', timeout: BUILD_TIMEOUT_MS });
      assert.equal(built.status, 0, built.stdout + built.stderr);
    }
    const alone = join(work, 'alone');
    cpSync(join(work, 'dist'), alone, { recursive: true });
    const files = readdirSync(alone, { recursive: true, encoding: 'utf8' });
    assert.ok(files.includes(BUNDLE_NAME) && files.includes(COMPILED_FOLDER) && files.includes(SBOM_NAME));
    // Read by all, written by the owner alone.
    for (const file of files) assert.equal(statSync(join(alone, file)).mode & 0o066, 0o044, file);
    const run = validated(alone);
    // Only the configuration is missing, no module.
    assert.equal(run.status, 78, run.stderr);
    assert.match(run.stderr, /absent\.yaml/);
  });

  it('reads in the image what the build compiled, and writes nothing', () => {
    const alone = join(work, 'alone');
    const before = readdirSync(alone, { recursive: true, encoding: 'utf8' });
    assert.match(validated(alone).stderr, /V8 code cache for ESM .*configuration-.*accepted/);
    assert.deepEqual(readdirSync(alone, { recursive: true, encoding: 'utf8' }), before);
  });

  it('compiles by itself where another Node built it, and writes nothing', () => {
    const alone = join(work, 'alone');
    const [tag = ''] = readdirSync(join(alone, COMPILED_FOLDER));
    renameSync(join(alone, COMPILED_FOLDER, tag), join(alone, COMPILED_FOLDER, `v24.15.0-${tag}`));
    const run = validated(alone);
    assert.equal(run.status, 78, run.stderr);
    assert.doesNotMatch(run.stderr, /accepted/);
    assert.deepEqual(readdirSync(join(alone, COMPILED_FOLDER)), [`v24.15.0-${tag}`]);
  });
});

/** The bundle in this folder as the image runs it, with what Node says of compiled code. */
function validated(folder: string) {
  const [, ...flags] = execForm(image, 'ENTRYPOINT') ?? [];
  return spawnSync(process.execPath, [...flags.slice(0, -1), BUNDLE_NAME, 'validate', '--config', 'absent.yaml'], {
    cwd: folder,
    env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
    encoding: 'utf8',
  });
}
