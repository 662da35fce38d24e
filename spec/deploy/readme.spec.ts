import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { kubectl } from './kubectl.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'deploy/README.md'), 'utf8');
const DEADLINE_MS = 60_000;

/** What needs a cluster, an engine or an image, and is not run. */
const ELSEWHERE = /^docker |docker compose|^kubectl (apply|diff|-n \S+ port-forward)|\| kubectl apply/;

/** A command that is refused: its exit code, and what it prints. */
const REFUSED = {
  command: 'npm run -s acg -- validate --config deploy/overlays/prod/gateway.yaml',
  code: 78,
  prints: /payments\.x402\.payTo: must be/,
};

/** One a line, without its comment; a line that ends with a backslash goes on. */
function commands(markdown: string): readonly string[] {
  return [...markdown.matchAll(/```sh\n([\s\S]*?)```/g)]
    .flatMap(([, block = '']) => block.replaceAll('\\\n', ' ').split('\n'))
    .map((line) => line.replace(/\s+# .*$/, '').trim())
    .filter((line) => line !== '');
}

describe('the README of the deployment', () => {
  const work = mkdtempSync(join(tmpdir(), 'readme-'));
  after(() => rmSync(work, { recursive: true }));
  cpSync(join(ROOT, 'deploy'), join(work, 'deploy'), {
    recursive: true,
    filter: (source) => !/\/secrets\/(gateway|redis)$/.test(source),
  });
  for (const name of ['src', 'tools', 'schemas', 'package.json', 'node_modules'])
    symlinkSync(join(ROOT, name), join(work, name));
  const env = { ...process.env, PATH: `${dirname(kubectl())}:${process.env['PATH']}` };

  const all = commands(README);
  const here = all.filter((command) => !ELSEWHERE.test(command));

  it('has commands that need nothing but this repository', () => {
    assert.ok(here.length >= 3 && here.includes(REFUSED.command), here.join('\n'));
  });

  for (const command of here)
    it(`does what it says: ${command}`, () => {
      const { status, stdout, stderr } = spawnSync('bash', ['-c', `set -o pipefail; ${command}`], {
        cwd: work,
        env,
        encoding: 'utf8',
        timeout: DEADLINE_MS,
      });
      const refused = command === REFUSED.command;
      assert.equal(status, refused ? REFUSED.code : 0, stdout + stderr);
      if (refused) assert.match(stderr, REFUSED.prints);
    });

  it('names only files that exist', () => {
    const paths = [
      ...README.matchAll(/`((?:base|components|overlays|monitoring|compose|bundle|admission)\/[\w./-]*)`/g),
    ];
    assert.ok(paths.length > 8);
    for (const [, path = ''] of paths) assert.ok(existsSync(join(ROOT, 'deploy', path)), path);
  });
});
