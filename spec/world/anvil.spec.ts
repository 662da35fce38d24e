import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { getContractAddress } from 'viem';
import { LOCAL_TOKEN } from '../../src/payments/pricing/networks.ts';
import { findAnvil } from '../../tools/local-world/anvil.ts';
import { startChain } from '../../tools/local-world/chain.ts';
import { TOKEN_DEPLOYER } from '../../tools/local-world/token.ts';

describe('the program of the local chain', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-anvil-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const put = (path: string): string => {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), '');
    return join(folder, path);
  };
  const processor = process.arch === 'x64' ? 'amd64' : process.arch;
  const packaged = put(`project/node_modules/@foundry-rs/anvil-${process.platform}-${processor}/bin/anvil`);
  const installed = put('foundry/bin/anvil');
  const nowhere = join(folder, 'nowhere');

  it('is that of the package, wherever modules of the program or of the working directory find it', () => {
    const below = join(folder, 'project/src/deep/module.js');
    assert.equal(findAnvil([join(nowhere, 'x.js'), below], dirname(installed)), packaged);
  });

  it('is else the one of PATH', () => {
    assert.equal(findAnvil([join(nowhere, 'x.js')], `${nowhere}:${dirname(installed)}`), installed);
  });

  it('is missing with one line that says what to install', () => {
    assert.throws(
      () => findAnvil([join(nowhere, 'x.js')], nowhere),
      ({ message }: Error) =>
        /^there is no anvil .*npm install @foundry-rs\/anvil .*getfoundry\.sh/.test(message) && !message.includes('\n'),
    );
  });
});

describe('the local chain', () => {
  it('has its token at the same address each time', async () => {
    assert.equal(getContractAddress({ from: TOKEN_DEPLOYER, nonce: 0n }), LOCAL_TOKEN.address);
    const chain = await startChain();
    try {
      assert.notEqual(await chain.request('eth_getCode', [LOCAL_TOKEN.address, 'latest']), '0x');
    } finally {
      await chain.stop();
    }
  });
});
