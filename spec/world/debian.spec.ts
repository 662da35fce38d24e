import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { closure, dependencyTable } from '../support/apt.ts';
import { debianProgram } from '../support/debian.ts';

const PRINTED = `browser
  Depends: libdrawing1
 |Depends: libmenus-3-0
    libmenus-3-0t64
  Depends: portal
  PreDepends: libsound2
  Depends: <libvirtual>
libdrawing1
  Depends: libpaper1
  Depends: libdrawing-data
  Depends: zlib1g
libmenus-3-0
  Depends: libicons1
portal
  Depends: libportal1
libpaper1
  Depends: libdrawing1
`;

describe('the packages of a program of Debian', () => {
  const table = dependencyTable(PRINTED);

  it('are read with what they depend on, without what is no package', () => {
    assert.deepEqual(table.get('browser'), ['libdrawing1', 'libmenus-3-0', 'portal', 'libsound2']);
    assert.deepEqual(table.get('libpaper1'), ['libdrawing1']);
  });

  const browser = { names: ['browser', 'fonts'] };
  for (const { rule, without, installed = [], packages } of [
    {
      rule: 'come with the libraries they lead to, through libraries alone',
      packages: 'browser fonts libdrawing1 libmenus-3-0 libsound2 libpaper1 libdrawing-data zlib1g libicons1',
    },
    {
      rule: 'come without a library that is not wanted, nor what only it needs',
      without: /^libmenus-/,
      packages: 'browser fonts libdrawing1 libsound2 libpaper1 libdrawing-data zlib1g',
    },
    {
      rule: 'come without what the machine has',
      installed: ['libdrawing1', 'libsound2', 'libmenus-3-0'],
      packages: 'browser fonts',
    },
  ])
    it(rule, () => {
      const found = closure({ ...browser, ...(without && { without }) }, table, (name) => !installed.includes(name));
      assert.equal(found.join(' '), packages);
    });
});

describe('a program of the tests', () => {
  const wanted = {
    name: 'no-such-program',
    variable: 'TEST_NO_SUCH_PROGRAM',
    folder: 'no-such-program',
    packages: { names: ['no-such-package-of-debian'] },
    path: 'usr/bin/no-such-program',
  };

  it('is the one that its variable names, if that runs', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'program-'));
    const program = join(directory, 'program');
    try {
      writeFileSync(program, '#!/bin/sh\nexit 0\n', { mode: 0o700 });
      process.env[wanted.variable] = program;
      assert.deepEqual(await debianProgram(wanted), { program, env: {} });
      process.env[wanted.variable] = join(directory, 'another');
      await assert.rejects(debianProgram(wanted), {
        message: 'TEST_NO_SUCH_PROGRAM does not name a no-such-program that runs',
      });
    } finally {
      delete process.env[wanted.variable];
      rmSync(directory, { recursive: true });
    }
  });

  it('is the one on PATH otherwise', async () => {
    assert.deepEqual(await debianProgram({ ...wanted, name: 'tar' }), { program: 'tar', env: {} });
  });
});
