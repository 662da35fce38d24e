import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, it } from 'node:test';
import { CONSOLE_FILES } from '../../../src/operator/console/routes.ts';

const sources = globSync('src/operator/console/*.js');

describe('the files of the console', () => {
  const served = new Set(CONSOLE_FILES.map(({ path }) => basename(path)));
  const page = readFileSync('src/operator/console/console.html', 'utf8');

  it('are all served', () => {
    assert.ok(sources.length > 10);
    for (const file of globSync('src/operator/console/*.{js,css,svg}')) assert.ok(served.has(basename(file)), file);
  });

  it('of the page are all there, and none comes from elsewhere', () => {
    const wanted = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map((match) => match[1] ?? '');
    assert.ok(wanted.length > 10);
    for (const name of wanted) assert.ok(served.has(name.replace(/^console\//, '')), name);
  });

  for (const file of sources) {
    const source = readFileSync(file, 'utf8');
    it(`${file} imports its neighbours only, and is preloaded`, () => {
      for (const [, name = ''] of source.matchAll(/from '([^']+)'/g)) {
        assert.match(name, /^\.\/[\w-]+\.js$/);
        assert.ok(page.includes(`href="console/${name.slice(2)}"`), name);
      }
    });

    it(`${file} names no file beside itself, which in the bundle is not there`, () =>
      assert.doesNotMatch(source, /import\.meta/));

    it(`${file} never makes markup, code or a stored value of a text`, () => {
      assert.doesNotMatch(
        source,
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|\.style\b|DOMParser|createContextualFragment|localStorage|sessionStorage|indexedDB|document\.cookie|location\./,
      );
    });
  }
});
