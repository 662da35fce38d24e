import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unstableSource } from '../support/unstable.ts';

describe('the kubectl of these specs', () => {
  const deb822 =
    '# a comment\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nSigned-By: /k.gpg\n\nTypes: deb\n';
  const installed = `# deb cdrom:[Debian GNU/Linux 12.0.0]/ bookworm main
deb cdrom:[Debian GNU/Linux 12.0.0]/ bookworm main

deb http://mirror.example/debian/ bookworm main non-free-firmware
deb-src http://mirror.example/debian/ bookworm main
deb http://security.example/debian-security bookworm-security main
`;
  const sources: readonly { readonly of: string; readonly sources: string; readonly unstable: string }[] = [
    {
      of: 'an image',
      sources: deb822,
      unstable: 'Types: deb\nURIs: http://mirror.example/debian\nSuites: sid\nSigned-By: /k.gpg\n',
    },
    {
      of: 'an installed Debian',
      sources: installed,
      unstable: 'Types: deb\nURIs: http://mirror.example/debian/\nSuites: sid\nComponents: main non-free-firmware\n',
    },
    {
      of: 'a machine that names its key',
      sources: 'deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian bookworm main',
      unstable: 'Types: deb\nURIs: https://mirror.example/debian\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n',
    },
  ];
  for (const { of, sources: own, unstable } of sources)
    it(`comes from the mirror that the machine already trusts: ${of}`, () => {
      assert.equal(unstableSource(own), unstable);
    });

  it('is not fetched where there is no mirror', () => {
    assert.throws(() => unstableSource('deb cdrom:[Debian GNU/Linux 12.0.0]/ bookworm main'), /no source of Debian/);
    assert.throws(() => unstableSource('Types: deb\nURIs: http://mirror.example/debian\n'), /no source of Debian/);
  });
});
