import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { parseConfig } from '../../src/config/load.ts';
import { baseDocument, PAYEE } from '../config/document/document.ts';
import { file } from '../config/files.ts';
import { type Block, blocksOf, DOCUMENTS } from './blocks.ts';
import { SECRETS } from './world.ts';

const MAKEFILE = readFileSync('Makefile', 'utf8');

describe('the code blocks that are validated', () => {
  for (const block of DOCUMENTS.flatMap(blocksOf).filter(({ kind }) => kind === 'validated')) {
    const { document, line, language } = block;
    it(`${document}:${line}, ${language}`, () => {
      if (language === 'sh') validateShell(block);
      else if (language === 'yaml') for (const part of alternatives(block.text)) validateConfig(part);
      else if (language === 'json') validateJson(block);
      else assert.fail(language);
    });
  }
});

/** Its syntax, and that every file, target of make, script and command of `acg` in it is there. */
function validateShell({ text }: Block): void {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const known = (pattern: RegExp, is: (name: string) => boolean): void => {
    for (const [, name = ''] of text.matchAll(pattern)) assert.ok(is(name), name);
  };
  known(/\b((?:deploy|docs|src|spec)\/[\w./-]+)/g, existsSync);
  known(/\bmake ([a-z-]+)/g, (target) => new RegExp(`^${target}:`, 'm').test(MAKEFILE));
  known(/\bnpm run (?:-s )?(\w+)/g, (script) => script in packageJson.scripts);
  const usage = spawnSync(process.execPath, ['tools/acg.ts', '--help'], { encoding: 'utf8' }).stdout;
  known(/\bacg (?:-- )?([a-z]+)/g, (command) => new RegExp(`^ +${command}\\b`, 'm').test(usage));
}

/** A key that comes again begins another way to write the same section. */
function alternatives(text: string): readonly string[] {
  const [first = ''] = text.split(':');
  return text.split(new RegExp(`^(?=${first}:)`, 'm'));
}

/** A part of a configuration, with what every configuration needs. */
function validateConfig(text: string): void {
  const filled = text
    .replaceAll(/\/run\/secrets\/([\w.-]+)/g, (_, name: string) => file(name, SECRETS[name] ?? assert.fail(name)))
    .replaceAll(`\${REDIS_URL}`, 'redis://127.0.0.1:6379')
    .replaceAll('0x…', PAYEE);
  const [base, part] = [baseDocument(), parse(filled) as Record<string, object>];
  const storage = part['storage'] ?? {};
  // What names no store goes into the section that has one.
  const isPart = !('redis' in storage || 'sqlite' in storage);
  const whole = { ...base, ...part, storage: isPart ? { ...Object(base['storage']), ...storage } : storage };
  parseConfig(JSON.stringify(whole), {});
}

/** What stands in angle brackets is a token of two parts. */
function validateJson({ text, detail }: Block): void {
  const ajv = new Ajv2020();
  const validate = ajv.compile(JSON.parse(readFileSync(detail ?? assert.fail('it names no schema'), 'utf8')));
  const token = [1, 2, 3].map(() => 'abcdefgh').join('.');
  assert.ok(validate(JSON.parse(text.replaceAll(/<[^>]+>/g, `${token}~`))), ajv.errorsText(validate.errors));
}
