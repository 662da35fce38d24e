import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cpuQuota, wholeCpus } from '../../src/workers/cpu-quota.ts';

type Files = Readonly<Record<string, string>>;

const V2 = '0::/\n';
const V1 = '4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n0::/docker/a\n';
const quotaOf = (files: Files): number | undefined => cpuQuota((path) => files[path]);

describe('the quota of processors', () => {
  const QUOTAS: readonly (readonly [title: string, files: Files, quota: number | undefined])[] = [
    [
      'is that of the cgroup of a container',
      { '/proc/self/cgroup': V2, '/sys/fs/cgroup/cpu.max': '150000 100000\n' },
      1.5,
    ],
    ['is none where it says max', { '/proc/self/cgroup': V2, '/sys/fs/cgroup/cpu.max': 'max 100000\n' }, undefined],
    [
      'is the smallest of the cgroup and those above it',
      {
        '/proc/self/cgroup': '0::/system.slice/acg.service\n',
        '/sys/fs/cgroup/system.slice/acg.service/cpu.max': '400000 100000\n',
        '/sys/fs/cgroup/system.slice/cpu.max': '200000 100000\n',
      },
      2,
    ],
    [
      'is found at the root of the mount where the path is that of the machine',
      { '/proc/self/cgroup': '0::/kubepods/pod1/one\n', '/sys/fs/cgroup/cpu.max': '300000 100000\n' },
      3,
    ],
    [
      'of version 1 is in two files',
      {
        '/proc/self/cgroup': V1,
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '250000\n',
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
      },
      2.5,
    ],
    [
      'of version 1 is none at -1',
      {
        '/proc/self/cgroup': V1,
        '/sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us': '-1\n',
        '/sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us': '100000\n',
      },
      undefined,
    ],
    ['is none where there are no cgroups', {}, undefined],
    ['is none where the file says nothing', { '/proc/self/cgroup': V2, '/sys/fs/cgroup/cpu.max': '' }, undefined],
  ];
  for (const [title, files, quota] of QUOTAS) it(title, () => assert.equal(quotaOf(files), quota));

  it('counts whole processors, at least one, and no more than the machine has', () => {
    const cpus = (quota: string, machine: number): number =>
      wholeCpus(
        (path) => ({ '/proc/self/cgroup': V2, '/sys/fs/cgroup/cpu.max': quota })[path],
        () => machine,
      );
    assert.deepEqual(
      [cpus('50000 100000', 8), cpus('190000 100000', 8), cpus('400000 100000', 8), cpus('800000 100000', 2)],
      [1, 1, 4, 2],
    );
    assert.equal(cpus('max 100000', 6), 6);
  });
});
