import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { acg, acgOfCheckout } from '../cli/acg.ts';
import { bundledGateway, codeBeside } from '../support/bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'acg-tools-'));
after(() => rmSync(folder, { recursive: true, force: true }));

describe('the commands for developers', () => {
  it('are listed by the entry of a working copy, beside those of the gateway', async () => {
    const { code, lines } = await acgOfCheckout(folder, ['--help']);
    assert.equal(code, 0);
    for (const command of ['init', 'dev', 'pay', 'wallet', 'mandate', 'vectors', 'serve', 'validate'])
      assert.ok(
        lines.some((line) => line.startsWith(`  ${command}`)),
        command,
      );
  });

  it('are named by the gateway alone, which does not have them', async () => {
    for (const command of ['init', 'dev', 'pay', 'wallet', 'mandate', 'vectors']) {
      const { code, errors } = await acg(folder, [command, 'keys']);
      assert.equal(code, 64);
      assert.match(errors, new RegExp(`npm run acg -- ${command}`));
    }
  });

  it('are not in the bundle: no image makes test keys or mandates', async () => {
    const bundle = codeBeside(process.env['GATEWAY_ENTRY'] ?? (await bundledGateway()));
    for (const text of ['TEST keys', 'acg vectors ap2 cases.json', 'anvil_setCode', 'SCHEMA_INPUT_MISSING'])
      assert.ok(!bundle.includes(text), text);
  });
});
