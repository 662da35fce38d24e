import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodeAbiParameters, hashTypedData, parseAbiParameters } from 'viem';
import { createRpc, type Rpc } from '../../../../src/payments/x402/chain/node.ts';
import { createWalletSignatures } from '../../../../src/payments/x402/chain/wallet-signature.ts';
import type { Eip3009Authorization, WalletSignatures } from '../../../../src/payments/x402/wire/types.ts';
import { type Chain, startChain } from '../../../../tools/local-world/chain.ts';
import { decode } from '../../../e2e/proofs.ts';
import { createWalletBuyer, type WalletBuyer, type WalletSignature } from '../../../support/wallets.ts';
import { offerFor, PRICE_UNITS, RESOURCE_URL, termsFor, typedData } from '../signing.ts';

const NOT_SIGNED = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;
const NOT_DEPLOYED = { kind: 'refused', reason: 'eip6492_factory_not_allowed' } as const;
const MARK = '6492'.repeat(16);

describe('the signature of a wallet', () => {
  let chain: Chain;
  let rpc: Rpc;
  let deployed: WalletBuyer;
  let planned: WalletBuyer;
  before(async () => {
    chain = await startChain();
    rpc = createRpc(chain.rpcUrl);
    [deployed, planned] = [await createWalletBuyer(chain, PRICE_UNITS), await createWalletBuyer(chain, PRICE_UNITS)];
    await deployed.deploy();
  });
  after(async () => {
    await rpc?.close();
    await chain?.stop();
  });

  const asking = (deploysWallets = true): WalletSignatures => createWalletSignatures(rpc, deploysWallets);
  /** What a wallet signs, and how: from the official client. */
  const signed = async (wallet: WalletBuyer, how: WalletSignature) => {
    const terms = termsFor(chain.token, chain.chainId);
    const { description: _unsaid, ...resource } = { url: RESOURCE_URL, description: undefined };
    const required = { x402Version: 2, resource, accepts: [offerFor(terms)] };
    const { authorization, signature } = decode(await wallet.pay(required, how)).payload;
    const digest = hashTypedData(typedData(authorization as unknown as Eip3009Authorization, terms));
    return { digest, signature: String(signature) };
  };

  it('is asked of its code when it is deployed', async () => {
    const { digest, signature } = await signed(deployed, 'plain');
    assert.deepEqual(await asking().check(deployed.address, digest, signature), { kind: 'signed', signature });
    assert.deepEqual(await asking().check(deployed.address, `0x${'11'.repeat(32)}`, signature), NOT_SIGNED);
    assert.deepEqual(await asking().check(deployed.address, digest, `0x${'ab'.repeat(200)}`), NOT_SIGNED);
    assert.deepEqual(await asking().check(planned.address, digest, signature), NOT_SIGNED, 'no code, no signature');
  });

  it('loses its wrapper when the wallet is deployed already', async () => {
    const { digest, signature } = await signed(deployed, 'wrapped');
    const verdict = await asking().check(deployed.address, digest, signature);
    assert.ok(verdict.kind === 'signed');
    assert.equal(verdict.signature.length, 2 + 2 * 65);
    assert.equal((await asking(false).check(deployed.address, digest, signature)).kind, 'signed');
  });

  it('in a wrapper is asked of the wallet as it would be deployed, where the rail deploys it; nothing is deployed', async () => {
    const { digest, signature } = await signed(planned, 'wrapped');
    assert.deepEqual(await asking().check(planned.address, digest, signature), { kind: 'signed', signature });
    assert.deepEqual(await asking(false).check(planned.address, digest, signature), NOT_DEPLOYED);
    assert.equal(await chain.request('eth_getCode', [planned.address, 'latest']), '0x');
    for (const [wallet, hash] of [
      [planned.address, `0x${'11'.repeat(32)}`],
      [`0x${'77'.repeat(20)}`, digest],
    ] as const)
      assert.deepEqual(await asking().check(wallet, hash, signature), NOT_SIGNED);
  });

  it('in a wrapper of garbage is no signature', async () => {
    const [digest, word] = [`0x${'11'.repeat(32)}`, '0'.repeat(63)];
    const inside = (inner: `0x${string}`): string =>
      encodeAbiParameters(parseAbiParameters('address, bytes, bytes'), [planned.address, '0x', inner]).slice(2);
    for (const wrapped of [
      `0x${MARK}`,
      `0x${'ab'.repeat(31)}${MARK}`,
      `0x${'ff'.repeat(96)}${MARK}`,
      `0x${word}1${word}1${word}0${MARK}`,
      `0x${inside('0x')}${MARK}`,
      `0x${inside('0xabab')}${MARK}`,
    ])
      for (const { address } of [deployed, planned])
        assert.deepEqual(await asking().check(address, digest, wrapped), NOT_SIGNED, wrapped);
  });

  it('is unknown while the node is silent', async () => {
    const silent = createRpc('http://127.0.0.1:9');
    const wallets = createWalletSignatures(silent, true);
    await assert.rejects(wallets.check(deployed.address, `0x${'11'.repeat(32)}`, `0x${'ab'.repeat(66)}`));
    await silent.close();
  });
});
