import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { load } from './document/document.ts';

describe('the configured secrets', () => {
  it('are the tokens, keys, passwords and the parts of URLs in which providers put keys', () => {
    const secrets = load({
      'server.adminToken': 'operator-token-1',
      'server.adminTokenNext': 'operator-token-2',
      'backend.headers': { 'x-api-key': 'merchant-api-key' },
      storage: { redis: { url: 'redis://user:redis-pass%21word@redis.example:6379' } },
      'payments.x402.rpcUrl': 'https://rpc.example/v3/0123456789abcdef0123?apikey=query-api-key',
      'payments.x402.rpcUrls': ['https://rpc2.example/v3/second-node-key-0001'],
      'payments.x402.facilitator.auth': { type: 'bearer', token: 'facilitator-token' },
    }).secrets;
    for (const secret of [
      'operator-token-1',
      'operator-token-2',
      'merchant-api-key',
      'redis-pass%21word',
      'redis-pass!word',
      '0123456789abcdef0123',
      'query-api-key',
      'second-node-key-0001',
      'facilitator-token',
    ])
      assert.ok(secrets.includes(secret), secret);
    assert.ok(!secrets.some((secret) => secret.length < 8 || secret.includes('example')));
  });

  it('a password for Redis and one for its sentinels count too', () => {
    const nodes = ['sentinel-1:26379'];
    const sentinel = { name: 'shop', nodes, username: 'watcher', password: 'sentinel-password' };
    const secrets = load({ storage: { redis: { sentinel, username: 'shop', password: 'redis-password' } } }).secrets;
    assert.ok(secrets.includes('sentinel-password') && secrets.includes('redis-password'));
  });

  it('the secret of an API key counts line by line, not its id', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const keySecret = String(privateKey.export({ type: 'sec1', format: 'pem' }));
    const auth = { type: 'cdp', keyId: 'organizations/shop/apiKeys/one', keySecret };
    const secrets = load({ 'payments.x402.facilitator.auth': auth }).secrets;
    const [, ...lines] = keySecret.trim().split('\n').slice(0, -1);
    for (const line of lines.filter(({ length }) => length >= 8)) assert.ok(secrets.includes(line), line);
    assert.ok(!secrets.includes(auth.keyId) && !secrets.some((secret) => secret.startsWith('-----')));
  });

  it('a relayer key counts with and without its 0x', () => {
    const key = `0x${'7'.repeat(64)}`;
    const secrets = load({
      'payments.x402.facilitator': { mode: 'local', privateKey: key },
      'payments.x402.rpcUrl': 'http://rpc.example',
    }).secrets;
    assert.ok(secrets.includes(key) && secrets.includes(key.slice(2)));
  });
});
