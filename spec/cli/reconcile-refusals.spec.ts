import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Chain, startChain } from '../support/chain.ts';
import { type ConfigObject, worldConfig, writeConfig } from '../support/config.ts';
import { acg } from './acg.ts';

const RECONCILE = ['reconcile', '--from-chain'];
const NOBODY = 'http://127.0.0.1:9';
const x402 = (changes: ConfigObject): ConfigObject => ({ payments: { x402: changes } });
const remote = { mode: 'remote', url: NOBODY, privateKey: undefined };

type Row = readonly [what: string, args: readonly string[], code: number, says: RegExp, overrides?: ConfigObject];

describe('acg reconcile says clearly what is missing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-reconcile-'));
  let chain: Chain;
  before(async () => {
    chain = await startChain();
  });
  after(async () => {
    await chain.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const rows: readonly Row[] = [
    ['where from', ['reconcile'], 64, /--from-chain/],
    ['a readable beginning', [...RECONCILE, '--since', 'yesterday'], 64, /block number, or ISO 8601/],
    ['the zone of a time', [...RECONCILE, '--since', '2026-01-01T00:00'], 64, /block number, or ISO 8601/],
    ['a block that is there', [...RECONCILE, '--since', '999999'], 64, /after the newest block/],
    ['a time that has come', [...RECONCILE, '--since', '2999-01-01'], 64, /after the newest block/],
    ['a command that knows the option', ['validate', '--dry-run'], 64, /--dry-run belongs to reconcile/],
    ['a node', RECONCILE, 78, /x402\.rpcUrl: is missing/, x402({ rpcUrl: undefined, facilitator: remote })],
    ['a node that answers', RECONCILE, 1, /ECONNREFUSED/, x402({ rpcUrl: NOBODY })],
    ['a chain that fits', RECONCILE, 1, /assetDecimals is 6, not 9/, x402({ assetDecimals: 9 })],
    [
      'a store that answers',
      RECONCILE,
      1,
      /the store \(redis\) cannot be used/,
      { storage: { sqlite: undefined, redis: { url: 'redis://127.0.0.1:9' } } },
    ],
  ];
  for (const [what, args, code, says, overrides = {}] of rows)
    it(what, async () => {
      const path = join(folder, `${what.replaceAll(' ', '-')}.yaml`);
      const config = worldConfig({
        merchantUrl: 'http://127.0.0.1:3000',
        chain,
        storage: { sqlite: { path: ':memory:' } },
        facilitator: { mode: 'local' },
        ports: { agents: 8402, management: 8403 },
        overrides,
      });
      await writeConfig(path, config);
      const run = await acg(folder, [...args, '--config', path]);
      assert.deepEqual([run.code, run.lines], [code, []], run.errors);
      assert.match(run.errors, says);
    });
});
