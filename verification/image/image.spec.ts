import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { namespaced } from './bases.ts';
import { foundIn, memoryFolder } from './checks.ts';

describe('the run of the image', () => {
  it('finds shells, set-id files and what others may change, and nothing else', async () => {
    await using ends = new AsyncDisposableStack();
    const root = await temporaryDirectory(ends, 'acg-image-');
    for (const folder of ['bin', 'app', 'usr/share/bash']) mkdirSync(join(root, folder), { recursive: true });
    for (const [path, mode] of [
      ['bin/dash', 0o755],
      ['bin/node', 0o755],
      ['bin/su', 0o4755],
      ['app/open.mjs', 0o666],
    ] as const) {
      writeFileSync(join(root, path), '');
      chmodSync(join(root, path), mode);
    }
    const found = foundIn(root);
    assert.ok(found.includes('bin/dash: a shell or an installer'));
    assert.ok(found.includes('bin/su: runs with the rights of its owner'));
    assert.ok(found.includes('app/open.mjs: not only root may change it'));
    assert.ok(!found.some((line) => line.startsWith('bin/node') || line.startsWith('usr')));
  });

  it('reads where memory is counted from either version of cgroups', () => {
    const first = '5:cpu,cpuacct:/a\n4:memory:/libpod_parent/b\n0::/c\n';
    assert.equal(memoryFolder(first), '/sys/fs/cgroup/memory/libpod_parent/b');
    assert.equal(memoryFolder('0::/libpod_parent/b\n'), '/sys/fs/cgroup/libpod_parent/b');
  });

  it('lays unpacked tools over /usr only when there are any', () => {
    assert.match(namespaced('/tools', ['podman']).join(' '), /mount -t overlay .* \/tools podman$/);
    assert.doesNotMatch(namespaced(undefined, ['podman']).join(' '), /overlay/);
  });
});
