import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { withStore } from '../../src/cli/with-store.ts';
import { parseConfig } from '../../src/config/load.ts';
import { type Receipt, receiptId } from '../../src/receipts/receipt.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { receipt } from '../payments/ledger/samples.ts';
import { type ConfigObject, NO_CHAIN, worldConfig, writeConfig } from '../support/config.ts';
import { openShell } from './shell.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const ends = new AsyncDisposableStack();
const shell = openShell(ends);
after(() => ends.disposeAsync());

describe('acg receipts --verify', () => {
  let folder: string;
  const configOf = (name: string, overrides: ConfigObject): ConfigObject =>
    worldConfig({
      chain: NO_CHAIN,
      backendUrl: 'http://127.0.0.1:9',
      facilitator: { mode: 'remote', url: 'http://127.0.0.1:1' },
      storage: { sqlite: { path: join(folder, `${name}.db`) } },
      ports: { agents: 1, management: 2 },
      overrides,
    });
  /** A configuration whose store has these receipts, written by a command. */
  const filled = async (name: string, receipts: readonly Receipt[]): Promise<string> => {
    const config = configOf(name, { signing: { key: KEY } });
    await writeConfig(join(folder, `${name}.yaml`), config);
    await withStore(parseConfig(JSON.stringify(config), {}), async (store) => {
      await store.receipts.write(receipts);
    });
    return `${name}.yaml`;
  };
  const run = (...args: readonly string[]) => shell.run(folder, ['receipts', '--verify', ...args]);

  before(async () => {
    folder = await temporaryDirectory(ends, 'acg-verify-');
  });

  it('prints the newest checkpoint, which a command that writes leaves behind', async () => {
    const config = await filled('sound', [receipt(receiptId(), 'one'), receipt(receiptId(), 'two')]);
    const { code, lines, errors } = await run('--config', config);
    assert.deepEqual([code, lines.length], [0, 1]);
    assert.match(lines[0] ?? '', /^[\w-]+\.[\w-]+\.[\w-]+$/);
    assert.equal(
      errors,
      'nothing was changed: 2 versions in 1 checkpoints, 0 of them not sealed yet; 2 receipts, 0 dropped, 0 from before the log\n',
    );
    await writeFile(join(folder, 'sound.jws'), lines.join('\n'));
    assert.equal((await run('--config', config, '--checkpoint', 'sound.jws')).code, 0);
  });

  it('ends with 1 when the log does not have what was copied', async () => {
    const config = await filled('other', [receipt(receiptId(), 'one')]);
    const { code, lines } = await run('--config', config, '--checkpoint', 'sound.jws');
    assert.deepEqual([code, lines], [1, ['checkpoint 1 is not the one that was copied']]);
    const json = JSON.parse((await run('--config', config, '--checkpoint', 'sound.jws', '--json')).text);
    assert.deepEqual(json.findings, [{ about: 'checkpoint 1', what: 'is not the one that was copied' }]);
  });

  it('says in one line what is wrong with what it is given', async () => {
    const config = await filled('given', []);
    const unsigned = configOf('unsigned', {});
    await writeConfig(join(folder, 'unsigned.yaml'), unsigned);
    await writeFile(join(folder, 'none.jws'), 'x.y.z');
    await writeFile(join(folder, 'empty.jws'), '\n');
    await writeConfig(join(folder, 'nothing.yaml'), configOf('nothing', { signing: { key: KEY } }));
    for (const [args, code, says] of [
      [['--config', 'nothing.yaml'], 66, /^storage\.sqlite\.path: .*nothing\.db: there is no store; run this where/m],
      [['--config', 'unsigned.yaml'], 78, /signing is missing|signing: is missing/],
      [['--config', config, '--checkpoint', 'nowhere'], 66, /^nowhere: there is no such file$/m],
      [['--config', config, '--checkpoint', 'none.jws'], 66, /^none\.jws: is no checkpoint$/m],
      [['--config', config, '--checkpoint', 'empty.jws'], 66, /^empty\.jws: has no checkpoint$/m],
      [['receipt_1', '--config', config], 64, /--verify verifies all receipts/],
      [['--url', 'http://127.0.0.1:1'], 64, /asks no gateway/],
    ] as const) {
      const { code: ended, errors } = await run(...args);
      assert.match(errors, says);
      assert.equal(ended, code, errors);
    }
    const alone = await shell.run(folder, ['receipts', '--checkpoint', 'none.jws', '--config', config]);
    assert.deepEqual([alone.code, alone.errors], [64, '--checkpoint belongs to --verify\n']);
  });
});
