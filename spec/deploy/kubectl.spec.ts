import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unstableSource } from './kubectl.ts';

describe('the kubectl of these specs', () => {
  it('comes from the mirror that the machine already trusts', () => {
    const sources =
      '# a comment\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nSigned-By: /k.gpg\n\nTypes: deb\n';
    assert.equal(
      unstableSource(sources),
      'Types: deb\nURIs: http://mirror.example/debian\nSuites: sid\nSigned-By: /k.gpg\n',
    );
    assert.throws(() => unstableSource('deb http://mirror.example/debian bookworm main'), /deb822/);
  });
});
