import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseConfig } from '../../src/config/load.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { file } from '../config/files.ts';

const ENVIRONMENT = { PUBLIC_URL: 'https://api.market-shop.example', PAY_TO: `0x${'1'.repeat(40)}` };

/** An example, whose secrets come from other places than `/run/secrets`. */
function example(name: string, secrets: Readonly<Record<string, string>> = {}) {
  const text = readFileSync(`deploy/examples/${name}`, 'utf8').replaceAll(
    /\/run\/secrets\/([a-z-]+)/g,
    (_, secret: string) => file(secret, secrets[secret] ?? assert.fail(`no secret ${secret}`)),
  );
  return parseConfig(text, {
    ...ENVIRONMENT,
    REDIS_URL: 'rediss://redis.example:6380',
    RPC_URL: 'https://rpc.example/key',
  });
}

function cdpSecret(): string {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64');
}

describe('the examples of docs/going-live.md', () => {
  it('sell for test money, with the one warning that is told', () => {
    const config = example('base-sepolia.yaml');
    assert.deepEqual([config.x402?.mode, config.x402?.confirm], ['testnet', 'receipt']);
    assert.equal(compileCatalogue(config).byId.size, 1);
    const [warning, ...others] = configWarnings(config);
    assert.match(warning ?? '', /^storage\.sealing\.keys: missing/);
    assert.deepEqual(others, []);
  });

  it('sell for real money, without a warning', () => {
    const config = example('base.yaml', {
      'admin-token': 'a-long-token-of-this-test',
      'redis-password': 'a-password-of-this-test',
      'sealing-key': Buffer.alloc(32, 1).toString('base64'),
      'cdp-key-id': 'a-key-of-this-test',
      'cdp-key-secret': cdpSecret(),
    });
    assert.equal(config.x402?.mode, 'mainnet');
    assert.equal(config.x402?.facilitator.mode === 'remote' && config.x402.facilitator.auth.type, 'cdp');
    assert.deepEqual(configWarnings(config), []);
  });
});

const DEPLOY = join(import.meta.dirname, '../../deploy');

describe('the README of the deployment', () => {
  it('names only files that exist', () => {
    const paths = [
      ...readFileSync(join(DEPLOY, 'README.md'), 'utf8').matchAll(
        /`((?:base|components|overlays|monitoring|compose|bundle|admission)\/[\w./-]*)`/g,
      ),
    ];
    assert.ok(paths.length > 8);
    for (const [, path = ''] of paths) assert.ok(existsSync(join(DEPLOY, path)), path);
  });
});
