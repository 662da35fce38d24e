import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { build } from 'rolldown';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { codeBeside, gatewayBundle } from '../support/bundle.ts';

/** Everything that may hold a letter: names, text, templates, patterns, kept comments. */
const LETTERS = `
/*! Licence of Jörg Größe … 🎉 */
/** The names in {…}. */
export function größe(text: string): unknown {
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
